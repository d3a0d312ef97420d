"""The site of the batch measurements: real jobs and real model processes, with a model that costs nothing."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator

import pytest

from workbench.bench.batch_site import JSON, JSON_LINES, Site, Strategy, site
from workbench.bench.processes import BenchError

PROGRAM = b"""
import json

def model_fn(model_dir): return None
def input_fn(body, content_type):
    text = body if isinstance(body, str) else body.decode()
    return [json.loads(line) for line in text.splitlines() if line]
def predict_fn(data, model): return [each for each in data if "lost" not in each]
def output_fn(prediction, accept): return "".join(json.dumps(each) + "\\n" for each in prediction)
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the model `echo`."""
    archive = tmp_path_factory.mktemp("echo") / "model.tar.gz"
    archive.write_bytes(_archive())
    with site() as made:
        made.add("echo", archive)
        yield made


@pytest.mark.parametrize(("strategy", "at_once"), [("MultiRecord", None), ("SingleRecord", None), ("SingleRecord", 1)])
def test_a_job_answers_every_record_in_order_and_says_what_is_billed(
    here: Site, strategy: Strategy, at_once: int | None
) -> None:
    """By either strategy, over several files, and in a time that holds the container's start."""
    records = [json.dumps({"number": number}).encode() for number in range(100)]
    job = here.transform("echo", records, strategy, at_once)
    assert [json.loads(answer)["number"] for answer in job.answers] == list(range(100))
    assert 0.05 < job.billed_s < 30


def test_a_job_that_loses_a_record_is_no_measurement(here: Site) -> None:
    """Fewer answers than records end the bench with both numbers."""
    with pytest.raises(BenchError, match="1 answers to 2 records"):
        here.transform("echo", [b'{"number": 1}', b'{"lost": true}'], "MultiRecord")


def test_the_serverless_container_is_called_directly(here: Site) -> None:
    """Its time is the model process's own, and only a 200 counts."""
    with here.serverless("echo-1") as container:
        assert 0 < container.seconds(b'{"text": "a"}', JSON) < 5
        assert container.memory_mb() > 1
        with pytest.raises(BenchError, match="the model answered 500"):
            container.seconds(b"not JSON", JSON_LINES)


def _archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        entry = tarfile.TarInfo("code/inference.py")
        entry.size = len(PROGRAM)
        tar.addfile(entry, io.BytesIO(PROGRAM))
    return out.getvalue()
