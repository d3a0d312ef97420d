"""The page of rules: what it is made of, and how it looks."""

from __future__ import annotations

import pytest

from tests.fidelity import Rule, page, rule_of

SERVED = {"sagemaker-runtime": frozenset({"InvokeEndpoint", "InvokeEndpointAsync"})}


def test_rules_by_area_with_their_sources_and_tests() -> None:
    """A rule is a row under its area, with its source and a link to every test that holds it, and escapes its table."""
    rules = {
        Rule("updates", "A | B", "botocore: UpdateEndpoint"): {"tests/b.py::test_two", "tests/a.py::test_one"},
        Rule("alarms", "C", "owner/repository#1"): {"tests/a.py::test_three"},
    }
    text = page(rules, SERVED)
    assert text.index("## Alarms") < text.index("## Updates")
    links = "[test_one](../tests/a.py)<br>[test_two](../tests/b.py)"
    assert f"| A \\| B | botocore: UpdateEndpoint | {links} |" in text
    assert "2 rules: [alarms](#alarms), [updates](#updates)." in text


def test_what_is_not_served_is_told_from_botocore() -> None:
    """The operations left out are those that botocore knows and the emulator does not serve."""
    text = page({}, SERVED)
    assert "- `sagemaker-runtime`: 2 served (InvokeEndpoint, InvokeEndpointAsync), 1 not" in text
    assert "<details><summary>those not served</summary>InvokeEndpointWithResponseStream</details>" in text
    assert "| CreateModel | An inference pipeline (several Containers) |" in text


def test_markers_say_all_three() -> None:
    """Area, rule and source are needed; a full stop at the end is not."""
    assert rule_of("a", "Rule.", source="s") == rule_of("a", "Rule", source="s")
    with pytest.raises(TypeError):
        rule_of("a", "Rule")  # type: ignore[call-arg]
