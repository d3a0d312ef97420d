"""What `policy check` says of documents, right and wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.bad_documents import ALL, HEAD, Bad
from workbench.errors import UserError
from workbench.policy import document
from workbench.policy.check import PolicyRefusedError, check, check_document, load
from workbench.policy.document import UnreadableError
from workbench.stack.layout import project_root

LINE = re.compile(r"[^:\n]+:(\d+):(\d+): [^\n]+")


def checked(tmp_path: Path, content: bytes) -> list[str]:
    """The problems of a document, as they are shown."""
    file = tmp_path / "policy.yaml"
    file.write_bytes(content)
    return [str(problem) for problem in check(str(file)).problems]


def test_the_list_of_bad_documents_is_long() -> None:
    """More than forty, no two of one name."""
    assert len({bad.what for bad in ALL}) == len(ALL) > 40


@pytest.mark.parametrize("bad", ALL, ids=lambda bad: bad.what)
def test_a_bad_document_is_told_by_line_and_cause(bad: Bad, tmp_path: Path) -> None:
    """One line each, `file:line:column: path: cause`; the first is the mistake that was made."""
    problems = checked(tmp_path, bad.content)
    assert problems
    for problem in problems:
        match = LINE.fullmatch(problem)
        assert match, problem
        assert int(match[2]) > 0
    first = LINE.fullmatch(problems[0])
    assert first
    assert int(first[1]) == bad.line, problems
    for word in bad.words:
        assert word in problems[0]


def test_every_mistake_is_told_in_the_order_of_the_text(tmp_path: Path) -> None:
    """One run names them all, line by line."""
    text = HEAD + "rulez: []\ndefaults: {order: [gpu]}\nrules:\n  - {id: a, order: []}\n  - {order: [batch], wenn: 1}\n"
    found = [LINE.fullmatch(problem) for problem in checked(tmp_path, text.encode())]
    lines = [int(match[1]) for match in found if match]
    assert lines == sorted(lines)
    assert set(lines) == {3, 4, 6, 7}


def test_many_mistakes_take_no_longer_than_their_number(tmp_path: Path) -> None:
    """Tens of thousands of problems in one document are told in seconds."""
    keys = "".join(f"k{i}: 1\n" for i in range(50_000))
    assert len(checked(tmp_path, (HEAD + keys).encode())) == 50_000


@pytest.mark.parametrize("file", sorted((project_root() / "policies").glob("*.yaml")), ids=lambda file: file.name)
def test_shipped_policies_are_right(file: Path) -> None:
    """Every example in policies/ has no problem."""
    assert [str(problem) for problem in check(str(file)).problems] == []


def problems_of(content: bytes) -> list[str]:
    """The problems of these bytes; none for a policy. Anything but problems is a failure."""
    try:
        return [str(problem) for problem in check_document(document.parse(content, "x.yaml")).problems]
    except UnreadableError as error:
        return [str(error)]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_policy_or_a_clean_problem(content: bytes) -> None:
    """Whatever the bytes: a policy, or problems of one line each."""
    assert all(LINE.fullmatch(problem) for problem in problems_of(content))


@given(st.text(st.sampled_from("abr:-[]{}&*!|>'\"\\%@`,?# \n\t01.~"), max_size=80))
def test_any_yaml_like_text_is_a_policy_or_a_clean_problem(text: str) -> None:
    """The same for text made of YAML's own signs, behind a right head."""
    assert all(LINE.fullmatch(problem) for problem in problems_of((HEAD + text).encode()))


def test_a_place_is_known_for_every_key_and_item() -> None:
    """Keys and list items have line and column; what is not there is placed at what holds it."""
    found = document.parse(b"a:\n  - b: 1\n    c: [x,\n      y]\n", "x.yaml")
    places = {(): (1, 1), ("a",): (1, 1), ("a", 0): (2, 5), ("a", 0, "b"): (2, 5)}
    places |= {("a", 0, "c"): (3, 5), ("a", 0, "c", 0): (3, 9), ("a", 0, "c", 1): (4, 7)}
    assert found.places == places
    assert str(found.problem(("a", 0, "d"), "why")) == "x.yaml:2:5: a[0].d: why"


def test_a_message_is_one_line_whatever_the_document_holds() -> None:
    """Line breaks, control characters and a megabyte of a key do not get into a message."""
    text = b'schema: inferlane/policy/v1\nversion: a\n? "x\\n\\e[2J' + b"y" * 5000 + b'"\n: 1\n'
    found = document.parse(text, "x.yaml")
    problem = str(check_document(found).problems[0])
    assert problem.isprintable()
    assert "x\\n\\x1b[2J" in problem
    assert problem.startswith("x.yaml:3:3: x")
    assert "unknown key" in problem
    assert len(problem) <= 800


def test_load_gives_the_first_problem_and_counts_the_others(tmp_path: Path) -> None:
    """What needs a policy names the first problem, and the command that shows them all."""
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD + "rulez: []\n")
    with pytest.raises(PolicyRefusedError, match=r"policy\.yaml:3:1: rulez: unknown key"):
        load(str(file))


@pytest.mark.parametrize("name", ["none.yaml", ".", "a\x00b", "x" * 5000])
def test_a_file_that_cannot_be_read_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a folder, an impossible name: one line."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        check(name)
    assert str(refused.value).isprintable()


def test_a_full_megabyte_is_read_quickly() -> None:
    """The largest document allowed takes about as long as its size says, not its square."""
    rules = b"".join(b"  - {id: r%d, when: {path: /a/%d}, order: [dedicated]}\n" % (i, i) for i in range(20_000))
    content = (HEAD.encode() + b"rules:\n" + rules)[: document.MAX_BYTES]
    content = content[: content.rindex(b"\n") + 1]
    found = document.parse(content, "x.yaml")
    assert len(found.places) > 80_000
