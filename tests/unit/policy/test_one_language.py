"""The workbench and the Pulumi program read the same YAML: neither may import the other, so this holds them equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from infra import policy_document
from infra.policy_document import PolicyDocumentError
from tests.unit.policy.bad_documents import BYTES, HEAD, YAML, Bad
from workbench.policy import document
from workbench.policy.check import check_document
from workbench.policy.document import UnreadableError
from workbench.stack.layout import project_root

TELLING = """
22:00 010 08 0o17 0x1F -0x1 +12 1_000 1e5 1.e3 .5 -.5 . - + 1.5.2 yes no on off true True TRUE tRUE null ~ Null
2026-12-01 .inf .nan -.inf = << 190:20:30 0b1 1e400 10% 5m 2MB *a &a !a @a `a %a a#b a:b -a ?a
"""
SCALARS = st.one_of(
    st.sampled_from(TELLING.split()),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[-+]?0?[ox]?[0-9a-f]{1,6}([.:_e][-+]?[0-9]{0,3})?", fullmatch=True),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12),
    st.text(max_size=6).map(json.dumps),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=8).map(
        lambda t: "'" + t.replace("'", "''") + "'"
    ),
)
FLOW = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(SCALARS, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one-language")


def by_the_program(folder: Path, content: bytes) -> str | None:
    """The JSON that the Pulumi program makes of a document; None when it refuses it."""
    file = folder / "policy.yaml"
    file.write_bytes(content)
    try:
        return policy_document.to_json(file)
    except PolicyDocumentError:
        return None


def by_the_workbench(content: bytes) -> str | None:
    """The JSON that `policy push` makes of a document; None when it cannot be read."""
    try:
        return document.parse(content, "policy.yaml").content().decode()
    except UnreadableError:
        return None


@pytest.mark.parametrize("file", sorted((project_root() / "policies").glob("*.yaml")), ids=lambda file: file.name)
def test_shipped_policies_become_the_same_json(file: Path) -> None:
    """Pushed or deployed, byte for byte."""
    assert policy_document.to_json(file) == by_the_workbench(file.read_bytes())


@pytest.mark.parametrize("bad", [*BYTES, *YAML], ids=lambda bad: bad.what)
def test_what_is_no_document_is_refused_by_both(bad: Bad, folder: Path) -> None:
    """Each refuses it cleanly, or passes on what the other's next check refuses."""
    assert by_the_program(folder, bad.content) is None or bad.what == "a merge key"
    try:
        assert check_document(document.parse(bad.content, "policy.yaml")).problems
    except UnreadableError:
        return


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(FLOW)
@example("[010, 08, 0o17, 0x1F]")
@example("[9" + "9" * 5000 + "]")
@example("1e400")
def test_a_value_is_read_alike(folder: Path, value: str) -> None:
    """Whatever stands for a value: both refuse it, or both read the same."""
    content = f"{HEAD}x: {value}\n".encode(errors="replace")
    assert by_the_program(folder, content) == by_the_workbench(content)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}|>'\"\\#?, \n\t01.~"), max_size=40))
def test_any_text_is_read_alike(folder: Path, text: str) -> None:
    """The same for text of YAML's own signs, lines and indentation included."""
    content = (HEAD + text).encode()
    assert by_the_program(folder, content) == by_the_workbench(content)
