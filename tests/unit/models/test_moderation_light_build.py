"""How moderation-light is made: the split, the head, the figures, and an archive that is the same every time."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import FOLDER

Step = Callable[[str], ModuleType]
FILES = {"model.onnx": b"weights" * 1000, "code/inference.py": b"x = 1\n", "code/requirements.txt": b"numpy\n"}


# --- archive ---------------------------------------------------------------------------------------------------------


def test_same_files_same_bytes(step: Step, tmp_path: Path) -> None:
    """Two packs of the same files, named in another order and at another path, are byte-identical."""
    archive = step("archive")
    archive.pack(FILES, tmp_path / "one.tar.gz")
    archive.pack(dict(reversed(FILES.items())), tmp_path / "later" / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "later" / "two.tar.gz").read_bytes()


def test_layout(step: Step, tmp_path: Path) -> None:
    """Entries are plain files, sorted, without owner or time; nothing else is left in the folder."""
    step("archive").pack(FILES, tmp_path / "model.tar.gz")
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        entries = tar.getmembers()
    assert [entry.name for entry in entries] == sorted(FILES)
    assert all(entry.isfile() and entry.mode == 0o644 for entry in entries)
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, 0, "", "")}
    assert [path.name for path in tmp_path.iterdir()] == ["model.tar.gz"]


def test_unpack_returns_what_was_packed(step: Step, tmp_path: Path) -> None:
    """Unpacking gives the same files back."""
    archive = step("archive")
    archive.pack(FILES, tmp_path / "model.tar.gz")
    archive.unpack(tmp_path / "model.tar.gz", tmp_path / "out")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == FILES


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "./model.onnx", "", "a//b"])
def test_names_that_may_not_be_packed(step: Step, tmp_path: Path, name: str) -> None:
    """A name that is not plain and relative is refused before anything is written."""
    with pytest.raises(ValueError, match="plain relative name"):
        step("archive").pack({name: b""}, tmp_path / "model.tar.gz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "kind"), [("link", tarfile.SYMTYPE), ("../up", tarfile.REGTYPE)])
def test_archives_that_are_not_unpacked(step: Step, tmp_path: Path, name: str, kind: bytes) -> None:
    """A link, or an entry that would land outside, is refused."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, "/etc/passwd" if kind == tarfile.SYMTYPE else ""
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
        tar.addfile(entry, io.BytesIO(b""))
    with pytest.raises(ValueError, match="no plain file"):
        step("archive").unpack(tmp_path / "model.tar.gz", tmp_path / "out")
    assert not (tmp_path / "up").exists()


def test_version_follows_content(step: Step) -> None:
    """The version changes with any name or content, and with nothing else."""
    version = step("archive").version
    assert version(FILES) == version(dict(reversed(FILES.items())))
    assert len({version(FILES), version({**FILES, "extra": b""}), version({**FILES, "model.onnx": b"other"})}) == 3


def test_shipped_layout(artifact: Path) -> None:
    """The built archive has the weights at its root, the code beside them, the licences, and no training text."""
    with tarfile.open(artifact) as tar:
        entries = tar.getmembers()
    assert all(entry.isfile() for entry in entries)
    assert [entry.name for entry in entries] == [
        "LICENSE",
        "LICENSE.training-data",
        "NOTICE",
        "code/inference.py",
        "code/moderation_contract.py",
        "code/requirements.txt",
        "model.json",
        "model.onnx",
        "tokenizer.json",
    ]


# --- data set --------------------------------------------------------------------------------------------------------


def write_csv(path: Path, *records: str, header: str = "text,is_toxic") -> Path:
    path.write_text("\n".join([header, *records]) + "\n", encoding="utf-8")
    return path


def test_halves_depend_on_texts_alone(step: Step, tmp_path: Path) -> None:
    """Reordering the file, or repeating a text with other case and blanks, moves nothing between the halves."""
    dataset = step("dataset")
    records = [f"text {number},{'Toxic' if number % 3 else 'Not Toxic'}" for number in range(40)]
    one = dataset.halve(dataset.read(write_csv(tmp_path / "one.csv", *records)))
    two = dataset.halve(dataset.read(write_csv(tmp_path / "two.csv", *reversed(records), "TEXT   3,Not Toxic")))
    assert [example.key for example in one.train] == [example.key for example in two.train]
    assert [example.key for example in one.held_out] == [example.key for example in two.held_out]


def test_halves_of_the_real_data(step: Step) -> None:
    """The halves of the shipped data share no text, and each class is split evenly."""
    dataset = step("dataset")
    halves = dataset.halve(dataset.read(FOLDER / "data" / "surge_toxicity_en.csv"))
    assert not {example.key for example in halves.train} & {example.key for example in halves.held_out}
    toxic = [sum(example.toxic for example in half) for half in (halves.train, halves.held_out)]
    assert abs(toxic[0] - toxic[1]) <= 1
    assert abs(len(halves.train) - len(halves.held_out)) <= 2


@pytest.mark.parametrize(
    ("records", "header", "message"),
    [
        (["a,Toxic"], "text,label", "expected the columns text,is_toxic"),
        (["a,Toxic", "b,maybe"], "text,is_toxic", "record 2: label 'maybe' is none of"),
        (['"  ",Toxic'], "text,is_toxic", "record 1: the text is empty"),
        (["a,Toxic", "A,Not Toxic"], "text,is_toxic", "record 2: the same text is labelled both ways"),
    ],
)
def test_bad_data(step: Step, tmp_path: Path, records: list[str], header: str, message: str) -> None:
    """A damaged data file stops the build with the record that is wrong."""
    dataset = step("dataset")
    with pytest.raises(dataset.DataError, match=message):
        dataset.read(write_csv(tmp_path / "data.csv", *records, header=header))


# --- head ------------------------------------------------------------------------------------------------------------


def clusters() -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    draw = np.random.default_rng(7)
    toxic = np.arange(200) % 2 == 0
    return draw.normal(0, 1, (200, 5)) + np.where(toxic, 1.0, -1.0)[:, None], toxic


def test_head_is_the_optimum(step: Step) -> None:
    """At the fitted weights the penalised loss has no slope in any direction, so there is one answer and no seed."""
    vectors, toxic = clusters()
    head = step("head").train(vectors, toxic)
    weights = np.array(head.weights)
    slack = 1 / (1 + np.exp(-(vectors @ weights + head.bias))) - toxic
    assert np.abs(vectors.T @ slack + head.penalty * weights).max() < 1e-3  # weights are rounded to six decimals
    assert abs(slack.sum()) < 1e-3


def test_head_is_repeatable(step: Step) -> None:
    """Training twice gives the same head, and the penalty is the one with the least out-of-fold loss."""
    first, second = (step("head").train(*clusters()) for _ in range(2))
    assert first == second
    assert first.penalty == min(first.log_loss, key=lambda pair: pair[1])[0]


# --- figures ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_roc_auc_counts_pairs(step: Step, pairs: list[tuple[int, bool]]) -> None:
    """ROC-AUC is the share of (toxic, ok) pairs in the right order, ties counted half."""
    scores, toxic = np.array([float(score) for score, _ in pairs]), np.array([flag for _, flag in pairs])
    if toxic.all() or not toxic.any():
        return
    wins = [(a > b) + (a == b) / 2 for a in scores[toxic] for b in scores[~toxic]]
    assert step("quality").roc_auc(scores, toxic) == pytest.approx(sum(wins) / len(wins))


def test_figures_of_a_known_case(step: Step) -> None:
    """Accuracy, precision, recall, F1, the matrix and a Wilson interval agree with a case worked by hand."""
    toxic = np.array([True] * 5 + [False] * 5)
    flagged = np.array([True] * 4 + [False] + [True] + [False] * 4)
    result = step("quality").measure(np.linspace(1, 0, 10), flagged, toxic, np.arange(10) * 10)
    confusion = result.confusion
    assert (confusion.true_toxic, confusion.false_toxic, confusion.true_ok, confusion.false_ok) == (4, 1, 4, 1)
    assert (result.accuracy.value, result.precision.value, result.recall.value) == (0.8, 0.8, 0.8)
    assert result.f1.value == pytest.approx(0.8)
    assert result.roc_auc.value == 1.0
    assert (result.accuracy.low, result.accuracy.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert [band.texts for band in result.by_length] == [2, 3, 5]


# --- README and command line -----------------------------------------------------------------------------------------


def test_readme_without_markers(step: Step, tmp_path: Path) -> None:
    """A README that lost its markers is refused and left as it is."""
    readme = step("readme")
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.BEGIN}\nold")
    with pytest.raises(readme.MarkerError, match="end of figures"):
        readme.write(path, "new")
    assert path.read_text() == f"before\n{readme.BEGIN}\nold"


def test_readme_has_its_figures(step: Step) -> None:
    """The figures in the README were written by a build: the block stands, with each line a build writes."""
    readme = step("readme")
    block = (FOLDER / "README.md").read_text(encoding="utf-8").partition(readme.BEGIN)[2].partition(readme.END)[0]
    assert all(label in block for label in ("| accuracy | ", "| ROC-AUC | ", "| latency P99 | ", "Machine: "))


def test_help() -> None:
    """`build.py --help` says what it writes."""
    done = subprocess.run([sys.executable, str(FOLDER / "build.py"), "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "model.tar.gz" in done.stdout


def test_failure_is_one_line(tmp_path: Path) -> None:
    """A build that cannot write says so in one line and exits 1."""
    target = tmp_path / "taken"
    target.write_text("a file")
    command = [sys.executable, str(FOLDER / "build.py"), "--out", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"error: {target} is not a folder; give another --out"]
