"""docs/fidelity.md: what the emulated SageMaker does as AWS does, each rule with its source and the tests that hold it.

`python -m tests.fidelity` writes the page, with `--check` it says whether the page is up to date. Rules are the
`@pytest.mark.fidelity(area, rule, source)` of all tests that pytest collects in the emulator's folders. What is not
emulated is read from the emulator: the operations botocore knows and it does not serve, and its own tables of gaps.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
from aiohttp import web
from botocore.loaders import Loader
from botocore.model import ServiceModel, StringShape

from workbench.stack.sagemaker.api.gaps import CONTAINERS, WITHOUT_EFFECT, Gap
from workbench.stack.sagemaker.runtime.door import NOT_EMULATED
from workbench.stack.sagemaker.scaling.metric_math import FUNCTIONS
from workbench.stack.sagemaker.scaling.resources import DIMENSIONS
from workbench.stack.sagemaker.server import Server
from workbench.stack.sagemaker.settings import Settings

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs/fidelity.md"
FOLDERS: Final = ("tests/contract/sagemaker", "tests/unit/stack/sagemaker", "tests/conformance")
HEAD: Final = """\
# What the emulated SageMaker does as AWS does

Made by `python -m tests.fidelity` from the tests; do not edit. A rule stands here because a test fails when it does not
hold. Sources: the developer guide and the API reference of Amazon SageMaker, the user guides of Application Auto
Scaling and CloudWatch, botocore's service models, public GitHub issues (`owner/repository#n`). What AWS does not say,
and the emulator has to decide, is an option with AWS's figure, where one is known: `inferlane sagemaker --help`.
"""


@dataclass(frozen=True, order=True)
class Rule:
    """One rule of the service."""

    area: str
    text: str
    source: str


class _Collector:
    """Has pytest say which tests hold which rule."""

    def __init__(self) -> None:
        self.tests: dict[Rule, set[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """pytest's hook."""
        for item in session.items:
            for mark in item.iter_markers("fidelity"):
                self.tests.setdefault(rule_of(*mark.args, **mark.kwargs), set()).add(item.nodeid.partition("[")[0])


def rule_of(area: str, rule: str, source: str) -> Rule:
    """A marker's arguments."""
    return Rule(area, rule.rstrip("."), source)


def collect() -> dict[Rule, set[str]]:
    """Every rule, with the ids of its tests. Raises `RuntimeError` when the tests cannot be collected."""
    collector, said = _Collector(), io.StringIO()
    folders = [folder for folder in FOLDERS if (ROOT / folder).is_dir()]
    with contextlib.redirect_stdout(said), contextlib.chdir(ROOT):
        status = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *folders], plugins=[collector])
    if status:
        raise RuntimeError(f"the tests cannot be collected:\n{said.getvalue()[-2000:]}")
    return collector.tests


async def served() -> Mapping[str, frozenset[str]]:
    """The operations that the emulator serves, by botocore's name of their service."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Settings(state_dir=Path(folder)))
        runner = web.AppRunner(server.app())
        await runner.setup()
        try:
            return server.served
        finally:
            await runner.cleanup()


def page(tests: Mapping[Rule, Iterable[str]], operations: Mapping[str, Iterable[str]]) -> str:
    """The whole page."""
    lines = [HEAD]
    areas = sorted({rule.area for rule in tests})
    lines += [f"{len(tests)} rules: " + ", ".join(f"[{area}](#{area.replace(' ', '-')})" for area in areas) + ".", ""]
    for area in areas:
        lines += [f"## {area[0].upper()}{area[1:]}", "", "| rule | source | held by |", "|---|---|---|"]
        lines += [_row(rule, tests[rule]) for rule in sorted(tests) if rule.area == area]
        lines.append("")
    return "\n".join([*lines, *_missing(operations)])


def _row(rule: Rule, tests: Iterable[str]) -> str:
    held = "<br>".join(f"[{name}](../{file})" for file, _, name in (test.partition("::") for test in sorted(tests)))
    return f"| {_cell(rule.text)} | {_cell(rule.source)} | {held} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _missing(operations: Mapping[str, Iterable[str]]) -> Iterator[str]:
    yield from (
        "## Not emulated",
        "",
        "Asked for, each of these is refused by its name:",
        "",
    )
    yield from ("| in | not emulated |", "|---|---|")
    for gap in Gap:
        yield f"| {gap.operation} | {gap.what} |"
    yield f"| InvokeEndpoint and its two siblings | {', '.join(NOT_EMULATED)} |"
    yield f"| RegisterScalableTarget | {', '.join(_other_dimensions())} |"
    yield f"| metrics of scaling policies | metric math beyond arithmetic, comparisons and {', '.join(FUNCTIONS)} |"
    yield from ("", "Accepted, described as given, and without effect here:", "")
    yield from (f"- {shape}: {', '.join(members)}" for shape, members in WITHOUT_EFFECT.items())
    yield from ("", "Model processes differ from SageMaker's containers:", "")
    yield from (f"- {text}" for text in CONTAINERS)
    yield from ("", f"Operations, of those that botocore {version('botocore')} knows:", "")
    for service, names in operations.items():
        known = ServiceModel(Loader().load_service_model(service, "service-2"), service).operation_names
        left = sorted(set(known) - set(names))
        yield f"- `{service}`: {len(list(names))} served ({', '.join(sorted(names))}), {len(left)} not"
        if left:
            yield f"  <details><summary>those not served</summary>{', '.join(left)}</details>"
    yield ""


def _other_dimensions() -> list[str]:
    """SageMaker's scalable dimensions that are not emulated."""
    model = ServiceModel(Loader().load_service_model("application-autoscaling", "service-2"))
    shape = model.shape_for("ScalableDimension")
    assert isinstance(shape, StringShape)
    return [name for name in shape.enum if name.startswith("sagemaker:") and name not in DIMENSIONS]


def main(arguments: list[str] | None = None) -> None:
    """`arguments` None: the command line's. Exits with 1 when the page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when the page is out of date")
    check = parser.parse_args(arguments).check
    # The emulator is not asked anything that needs them; it has no endpoint of AWS's to speak to, either.
    os.environ.update(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
    text = page(collect(), asyncio.run(served()))
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE.name} is out of date: run `python -m tests.fidelity`")


if __name__ == "__main__":
    main()
