"""The heads that are kept with moderation-heavy's source are those that its source makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from building import dataset, workshop
from moderation_heavy import heads, training
from rich.console import Console

Texts = Mapping[str, dataset.Halves]
Files = Mapping[str, bytes]


@pytest.fixture(scope="module")
def texts() -> Texts:
    """What the heads are trained on."""
    return training.texts()


@pytest.fixture(scope="module")
def files() -> Files:
    """The encoders as they are packed."""
    return training.encoders([block for blocks in training.BLOCKS.values() for block in blocks])


def test_what_is_kept_is_of_the_source(texts: Texts, files: Files) -> None:
    """Texts, encoders and code are those that the heads were made of; else every build would train for minutes."""
    kept = heads.kept(heads.made_of(texts, files))
    assert kept is not None, "run `python models/moderation-heavy/build.py --train --write-readme`"
    assert kept.keys() == training.BLOCKS.keys()
    for language, made in kept.items():
        blocks = [(block["encoder"], block["layer"]) for block in made.document["blocks"]]
        assert tuple(blocks) == training.BLOCKS[language]
        assert len(made.head.weights) == 384 * len(blocks)
        assert made.head.threshold == made.document["threshold"]


def test_other_texts_or_encoders_have_no_heads_here(texts: Texts, files: Files) -> None:
    """A label, a text or a byte changed: nothing that is kept belongs to it."""
    halves = texts["english"]
    first = halves.train[0]
    for other in (dataset.Example(first.text, not first.toxic), dataset.Example(first.text.swapcase(), first.toxic)):
        changed = {**texts, "english": dataset.Halves((other, *halves.train[1:]), halves.held_out)}
        assert heads.kept(heads.made_of(changed, files)) is None
    assert heads.kept(heads.made_of(texts, {**files, "e5.onnx": files["e5.onnx"] + b"\0"})) is None
    assert heads.made_of(texts, files) == heads.made_of(dict(texts), dict(sorted(files.items(), reverse=True)))


def test_what_was_kept_is_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: Texts, files: Files
) -> None:
    """The same heads, figures too; without a file there are none, and nonsense in it is said to be that."""
    key = heads.made_of(texts, files)
    before = heads.kept(key)
    assert before is not None
    monkeypatch.setattr(heads, "FILE", tmp_path / "heads.json")
    assert heads.kept(key) is None
    heads.keep(key, before)
    assert heads.kept(key) == before
    assert heads.kept("another") is None
    (tmp_path / "heads.json").write_text("{")
    with pytest.raises(workshop.BuildError, match="is not JSON"):
        heads.kept(key)


@pytest.mark.soak  # a minute or two
@pytest.mark.timeout(900)
def test_trained_anew_they_are_the_same(texts: Texts, files: Files, tmp_path: Path) -> None:
    """On any machine, but for the last digits that its arithmetic decides."""
    kept = heads.kept(heads.made_of(texts, files))
    assert kept is not None
    for language, blocks in training.BLOCKS.items():
        examples = texts[language].train
        rows = training.vectors(blocks, examples, files, tmp_path / f"{language}.npz", Console(stderr=True))
        made = training.train(blocks, examples, rows, training.PENALTIES[language])
        assert made.head.weights == pytest.approx(kept[language].head.weights, abs=0.02)
        assert made.head.threshold == pytest.approx(kept[language].head.threshold, abs=0.02)
        assert made.head.accuracy == pytest.approx(kept[language].head.accuracy, abs=0.01)
