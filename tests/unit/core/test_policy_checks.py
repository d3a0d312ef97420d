"""What can never be reached: ids, routes, tenants and rules that an earlier one takes everything from."""

from __future__ import annotations

import pytest

from functions.core.policy_parser import problems
from tests.unit.core.builders import policy_document


def found(**parts: object) -> list[str]:
    return [str(error) for error in problems(policy_document(**parts))]


def rules(*conditions: object) -> dict[str, object]:
    """Rules r0, r1, … that take all that their conditions hold for."""
    return {"rules": [{"id": f"r{i}", "when": when, "order": ["batch"]} for i, when in enumerate(conditions)]}


def tenants(*questions: dict[str, object]) -> dict[str, object]:
    return {"tenants": [{**asked, "tenant": "t", "tier": "vip"} for asked in questions]}


def test_every_later_use_of_an_id_is_told_with_the_first() -> None:
    """Over rules and experiments; an id that is no text is another mistake."""
    when = [{"tenant": name} for name in "abc"]
    trial = {"order": ["batch"], "share": "1%", "guard": {"max_error_rate": "1%"}}
    assert found(
        rules=[{"id": "x", "when": one, "order": ["batch"]} for one in when],
        experiments=[{"id": "y", **trial}, {"id": "x", **trial}, {"id": "y", **trial}, {"id": 7, **trial}],
    ) == [
        "rules[1].id: 'x' is given twice (first at rules[0])",
        "rules[2].id: 'x' is given twice (first at rules[0])",
        "experiments[1].id: 'x' is given twice (first at rules[0])",
        "experiments[2].id: 'y' is given twice (first at experiments[0])",
        "experiments[3].id: expected text, found a number",
    ]


def test_ids_are_compared_after_a_mistake_too() -> None:
    """A rule that is no mapping, and one whose id is no text, hide no duplicate behind them."""
    rule = {"when": {"tenant": "a"}, "split": {"share": "1%", "order": ["batch"]}}
    assert found(rules=[7, {"id": 7, **rule}, {"id": "x", **rule}, {"id": "x", **rule}]) == [
        "rules[0]: expected a mapping, found a number",
        "rules[1].id: expected text, found a number",
        "rules[3].id: 'x' is given twice (first at rules[2])",
    ]


def test_routes_are_the_same_when_they_match_the_same_paths() -> None:
    """Whatever their segments are called, and whatever model they name."""
    paths = ["/a/{x}", "/b", "/c/**", "/a/*", "/a/{y}", "/c/**"]
    assert found(routes=[{"path": path, "model": f"m{i}"} for i, path in enumerate(paths)]) == [
        "routes[3].path: never reached: routes[0] has the same path",
        "routes[4].path: never reached: routes[0] has the same path",
        "routes[5].path: never reached: routes[2] has the same path",
    ]


@pytest.mark.parametrize(
    ("paths", "covered"),
    [
        (["/a/b", "/a/b"], {1: 0}),
        (["/a/*", "/a/b"], {1: 0}),
        (["/a/b", "/a/*"], {}),
        (["/a/*", "/a/"], {}),
        (["/a/*", "/a"], {}),
        (["/a/*", "/a/b/c"], {}),
        (["/a/**", "/a"], {1: 0}),
        (["/a/**", "/a/"], {1: 0}),
        (["/a/**", "/a/b/**"], {1: 0}),
        (["/a/b/**", "/a/**"], {}),
        (["/a/b", "/a/b/**"], {}),
        (["/*/**", "/a/**"], {1: 0}),
        (["/**", "/a", "/**", "/b/{x}"], {1: 0, 2: 0, 3: 0}),
        (["/a/*", "/*/b", "/**", "/a/b"], {3: 0}),
        (["/*/b", "/a/*", "/a/b"], {2: 0}),
        (["/x", "/**", "/x"], {2: 0}),
        (["/*/c/**", "/a/*/d", "/{x}/{y}/d", "/a/c/d"], {3: 0}),
    ],
)
def test_a_route_is_never_reached_when_an_earlier_one_takes_all_its_paths(
    paths: list[str], covered: dict[int, int]
) -> None:
    """The first that does is named, and whether its path is the same."""
    shapes = [path.replace("{x}", "*").replace("{y}", "*") for path in paths]
    assert found(routes=[{"path": path, "model": "m"} for path in paths]) == [
        f"routes[{later}].path: never reached: routes[{first}] "
        + ("has the same path" if shapes[first] == shapes[later] else f"takes every path of {paths[later]!r}")
        for later, first in covered.items()
    ]


@pytest.mark.parametrize(
    ("entries", "covered"),
    [
        ([{"identity": "a*"}, {"identity": "ab"}], {1: 0}),
        ([{"identity": "ab"}, {"identity": "a*"}], {}),
        ([{"identity": "a*"}, {"api_key": "ab"}], {}),
        ([{"identity": "a*"}, {"claim": {"identity": "ab"}}], {}),
        ([{"api_key": "*"}, {"api_key": "x"}, {"identity": "x"}], {1: 0}),
        ([{"api_key": "?"}, {"api_key": "xy"}, {"api_key": "z"}], {2: 0}),
        ([{"api_key": "x-?"}, {"api_key": "x-1"}, {"api_key": "x-12"}], {1: 0}),
        ([{"claim": {"a": "*"}}, {"claim": {"a": "x", "b": "y"}}, {"claim": {"b": "y"}}], {1: 0}),
        ([{"claim": {"a": "x", "b": "y"}}, {"claim": {"a": "x"}}], {}),
        ([{"claim": {"a": "x", "b": "*"}}, {"claim": {"b": "y", "a": "x"}}], {1: 0}),
        ([{"claim": {"a": "x", "b": "y"}}, {"claim": {"a": "x", "b": "*"}}], {}),
        ([{"identity": "long-*"}, {"identity": "*-long"}, {"identity": "x-long-*-long"}], {2: 1}),
        ([{"identity": "*long*"}, {"identity": "a-long-x?bc"}], {1: 0}),
        ([{"identity": "*long*"}, {"identity": "bc?a-long-x"}], {1: 0}),
        ([{"identity": "ab"}, {"identity": "ab"}, {"identity": "ab"}], {1: 0, 2: 0}),
        ([{"identity": "*b?c*"}, {"identity": "*bc*"}, {"identity": "a?bcd"}], {2: 1}),
        ([{"identity": "*bc*"}, {"identity": "*b*c*"}, {"identity": "*d"}, {"identity": "a?bcd"}], {3: 0}),
        ([{"identity": "*d"}, {"identity": "*b*c*"}, {"identity": "a?bcd"}], {2: 0}),
        ([{"claim": {"b": "y"}}, {"claim": {"a": "x"}}, {"claim": {"a": "x", "b": "y"}}], {2: 0}),
        ([{"identity": "*aaa*"}, {"identity": "aa?a"}, {"identity": "xaaaax"}], {2: 0}),
        ([{"identity": "a*a"}, {"identity": "a"}, {"identity": "aa"}], {2: 0}),
    ],
)
def test_a_tenants_entry_is_never_reached_when_an_earlier_one_covers_it(
    entries: list[dict[str, object]], covered: dict[int, int]
) -> None:
    """The first that does is named."""
    assert found(**tenants(*entries)) == [
        f"tenants[{later}]: never reached: tenants[{first}] covers it" for later, first in covered.items()
    ]


A, B, C = ({"tenant": name} for name in "abc")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (A, A),
        (A, {"all": [A]}),
        ({"all": [A]}, A),
        ({"all": [{"all": [A]}]}, A),
        ({"all": [A, {}]}, A),
        ({"all": [A, {"all": [{}]}]}, A),
        ({"all": [A, B]}, {"all": [B, A]}),
        ({"all": [A, A, B]}, {"all": [B, A]}),
        ({"any": [A, B]}, {"any": [B, A, B]}),
        ({"not": A}, {"not": {"all": [A]}}),
        ({"not": {"any": [A, B]}}, {"not": {"any": [B, A]}}),
        ({"tenant": "a", "tier": "vip"}, {"tier": "vip", "tenant": "a"}),
    ],
)
def test_conditions_that_ask_the_same_are_the_same(first: object, second: object) -> None:
    """The second rule is never reached, by its `when`."""
    assert found(**rules(first, second)) == ["rules[1].when: never reached: rule 'r0' has the same condition"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (A, B),
        (A, {"not": A}),
        ({"not": A}, {"not": B}),
        ({"all": [A, B]}, {"any": [A, B]}),
        ({"all": [A, B]}, {"all": [A, C]}),
        ({"all": [A, B]}, A),
        ({"any": [A, B]}, {"any": [A, C]}),
        ({"any": [A]}, A),
        ({"any": [A, {}]}, {"any": [A]}),
        ({"any": [A, {}]}, {"not": {}}),
        ({"not": {"all": [A, B]}}, {"not": {"any": [A, B]}}),
        ({"not": A}, {"any": [A]}),
    ],
)
def test_conditions_that_ask_something_else_are_different(first: object, second: object) -> None:
    """Neither the parts nor the words alone make two alike."""
    assert found(**rules(first, second)) == []
    assert found(**rules(second, first)) == []


@pytest.mark.parametrize("always", [None, {}, {"all": [{}]}, {"all": [{}, {"all": [{}]}]}])
def test_after_a_rule_without_a_condition_nothing_is_reached(always: object) -> None:
    """However its emptiness is written; each later rule is told, by the first that takes all."""
    assert found(**rules(A, always, B, always, A)) == [
        f"rules[{i}]: never reached: rule 'r1' before it has no condition" for i in (2, 3, 4)
    ]


def test_a_rule_with_a_split_takes_nothing_for_good() -> None:
    """Neither does what follows it; only a rule that takes all with the same condition does."""
    split = {"split": {"share": "50%", "order": ["batch"]}}
    whole = {"order": ["batch"]}
    assert found(
        rules=[
            {"id": "r0", **split},
            {"id": "r1", "when": A, **split},
            {"id": "r2", "when": A, **whole},
            {"id": "r3", "when": A, **split},
            {"id": "r4", "when": B, **whole},
            {"id": "r5", **whole},
            {"id": "r6", **split},
        ]
    ) == [
        "rules[3].when: never reached: rule 'r2' has the same condition",
        "rules[6]: never reached: rule 'r5' before it has no condition",
    ]


def test_long_names_are_cut_in_an_error() -> None:
    """To sixty characters, of a path as of a rule."""
    path, name = "/" + "x" * 70, "x" * 70
    routes = [{"path": "/*", "model": "m"}, {"path": path, "model": "m"}]
    assert found(routes=routes) == [f"routes[1].path: never reached: routes[0] takes every path of '{path[:60]}'"]
    assert found(rules=[{"id": name, "order": ["batch"]}, {"id": "r", "when": A, "order": ["batch"]}]) == [
        f"rules[1]: never reached: rule '{name[:60]}' before it has no condition"
    ]
