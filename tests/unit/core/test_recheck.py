"""Counting pairs of verdicts: against counting them again by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from functions.core.recheck import EXCERPT, MOST_LABELS, MOST_NAMES, OTHER, Findings, Pair, Recheck
from functions.core.recheck_capture import Verdict

labels = st.sampled_from(["ok", "toxic", "spam"])
verdicts = st.builds(Verdict, labels, st.none() | st.floats(0, 1), st.sampled_from([None, "v1", "v2"]))
pairs = st.lists(
    st.builds(
        Pair,
        request_id=st.text(st.sampled_from("abc"), min_size=1, max_size=3),
        number=st.integers(0, 3),
        hour=st.integers(0, 23),
        route=st.sampled_from(["/chat", "/images"]),
        lane=st.sampled_from(["dedicated", "serverless"]),
        text=st.text(max_size=5),
        light=verdicts,
        heavy=verdicts,
    ),
    max_size=60,
)


def pair(light: str, heavy: str, number: int = 0, **more: object) -> Pair:
    about: dict[str, object] = {
        "request_id": f"r-{number:03d}",
        "number": 0,
        "hour": 3,
        "route": "/chat",
        "lane": "dedicated",
        "text": f"text {number}",
        "light": Verdict(light, 0.5, "v1"),
        "heavy": Verdict(heavy, 0.5, "h1"),
    }
    return Pair(**{**about, **more})  # type: ignore[arg-type]


def found(*given: Pair, examples: int = 3) -> Findings:
    counts = Recheck("ok", examples)
    for each in given:
        counts.add(each)
    return counts.findings()


@given(pairs)
def test_counts_are_those_of_counting_again(given: list[Pair]) -> None:
    """Over all, and over each route, lane, version and hour; the parts add up to the whole."""
    result = found(*given)
    total = result.total
    assert total.verdicts == len(given)
    assert total.agreed == sum(each.light.label == each.heavy.label for each in given)
    assert total.missed == sum(each.light.label == "ok" != each.heavy.label for each in given)
    assert total.alarmed == sum(each.heavy.label == "ok" != each.light.label for each in given)
    assert total.light_flagged == sum(each.light.label != "ok" for each in given)
    assert total.heavy_flagged == sum(each.heavy.label != "ok" for each in given)
    for i, light in enumerate(result.labels):
        for j, heavy in enumerate(result.labels):
            counted = sum((each.light.label, each.heavy.label) == (light, heavy) for each in given)
            assert result.table[i][j] == counted
    assert sum(map(sum, result.table)) == len(given)
    for slices in (result.routes, result.lanes, result.light_versions, result.heavy_versions):
        assert sum(each.missed for each in slices.values()) == total.missed
        assert sum(each.verdicts for each in slices.values()) == total.verdicts
    assert sum(each.alarmed for each in result.hours) == total.alarmed
    assert sum(result.light_scores.values()) == sum(each.light.score is not None for each in given)
    assert sum(result.heavy_scores.values()) == sum(each.heavy.score is not None for each in given)


@given(pairs, st.integers(0, 5))
def test_the_clearest_examples_are_kept(given: list[Pair], most: int) -> None:
    """Against sorting them all by the score of whoever flags."""
    result = found(*given, examples=most)
    missed = [each for each in given if each.light.label == "ok" != each.heavy.label]
    clearest = sorted((-(each.heavy.score or 0.0), each.request_id, each.number) for each in missed)[:most]
    assert [(each.rank, each.request_id, each.number) for each in result.missed] == clearest
    alarmed = [each for each in given if each.heavy.label == "ok" != each.light.label]
    clearest = sorted((-(each.light.score or 0.0), each.request_id, each.number) for each in alarmed)[:most]
    assert [(each.rank, each.request_id, each.number) for each in result.alarmed] == clearest


def test_shares_are_of_what_they_say() -> None:
    """Of ten: six pass both, one is flagged by both, two are missed, one is a false alarm."""
    total = found(
        *[pair("ok", "ok")] * 6, pair("toxic", "toxic"), pair("ok", "toxic"), pair("ok", "toxic"), pair("toxic", "ok")
    ).total
    shares = (total.agreement, total.missed_of_flagged, total.missed_of_passed, total.alarmed_of_flagged)
    assert [each and round(each.value, 4) for each in shares] == [0.7, 0.6667, 0.25, 0.5]


def test_labels_of_two_kinds_of_trouble_disagree_without_a_miss() -> None:
    """Both flag it, by other names."""
    result = found(pair("spam", "toxic"), pair("toxic", "toxic"))
    assert (result.total.agreed, result.total.missed, result.total.alarmed) == (1, 0, 0)
    assert result.labels == ("ok", "toxic", "spam")


def test_names_without_end_are_counted_together() -> None:
    """Labels and routes beyond their bounds; the counts stay whole."""
    many = [pair(f"label {n}", f"label {n}", n, route=f"/{n}") for n in range(200)]
    result = found(*many)
    assert len(result.labels) == MOST_LABELS + 1
    assert len(result.routes) == MOST_NAMES + 1
    assert result.routes[OTHER].verdicts == 200 - MOST_NAMES
    assert result.total.agreed == sum(result.table[i][i] for i in range(len(result.labels))) == 200


def test_a_long_text_is_cut() -> None:
    """With a sign that it was."""
    (shown,) = found(pair("ok", "toxic", text="x" * 1000)).missed
    assert shown.text == "x" * (EXCERPT - 1) + "…"
    (whole,) = found(pair("ok", "toxic", text="x" * EXCERPT)).missed
    assert whole.text == "x" * EXCERPT


def test_nothing_is_nothing() -> None:
    """No pair, no figure."""
    result = found()
    assert (result.total.agreement, result.kappa, result.missed) == (None, None, ())


def test_slices_are_by_name_the_most_frequent_first() -> None:
    """Then by name; a version that is not told is called none."""
    old, new, untold = Verdict("ok", 0.1, "v1"), Verdict("ok", 0.1, "v2"), Verdict("ok", None, None)
    result = found(
        replace(pair("ok", "ok"), lane="serverless", light=untold, heavy=new),
        replace(pair("ok", "ok"), lane="dedicated", light=new, heavy=untold, route="/b"),
        replace(pair("ok", "ok"), lane="dedicated", light=new, heavy=new, route="/a"),
        replace(pair("ok", "ok"), lane="batch", light=old, heavy=new, route="/b"),
    )
    assert [list(each) for each in (result.routes, result.lanes)] == [
        ["/b", "/a", "/chat"],
        ["dedicated", "batch", "serverless"],
    ]
    assert {name: each.verdicts for name, each in result.light_versions.items()} == {"v2": 2, "none": 1, "v1": 1}
    assert {name: each.verdicts for name, each in result.heavy_versions.items()} == {"v2": 3, "none": 1}
    assert list(result.light_versions) == ["v2", "none", "v1"]


def test_scores_are_counted_by_bin() -> None:
    """One that is not told is in none."""
    result = found(
        replace(pair("ok", "ok"), light=Verdict("ok", 0.111, None)),
        replace(pair("ok", "ok"), light=Verdict("ok", 0.119, None)),
        replace(pair("ok", "ok"), light=Verdict("ok", 0.5, None)),
        replace(pair("ok", "ok"), light=Verdict("ok", None, None)),
    )
    assert result.light_scores == {11: 2, 50: 1}
    assert result.heavy_scores == {50: 4}


def test_examples_are_ranked_by_whoever_flags() -> None:
    """The surest first, one without a score last; what both flag or pass is none."""
    result = found(
        replace(pair("ok", "toxic", 1), heavy=Verdict("toxic", None, "h1")),
        replace(pair("ok", "toxic", 2), heavy=Verdict("toxic", 0.7, "h1")),
        replace(pair("ok", "toxic", 3), heavy=Verdict("toxic", 0.9, "h1"), number=4),
        replace(pair("toxic", "ok", 4), light=Verdict("toxic", 0.6, "v1")),
        replace(pair("toxic", "ok", 5), light=Verdict("toxic", 0.8, "v1")),
        pair("toxic", "toxic", 6),
        pair("ok", "ok", 7),
    )
    assert [(each.rank, each.request_id, each.number) for each in result.missed] == [
        (-0.9, "r-003", 4),
        (-0.7, "r-002", 0),
        (0.0, "r-001", 0),
    ]
    assert [(each.rank, each.request_id) for each in result.alarmed] == [(-0.8, "r-005"), (-0.6, "r-004")]
    assert (result.total.missed, result.total.alarmed) == (3, 2)


def test_labels_are_ordered_by_how_often_either_model_says_them() -> None:
    """The passing one first, however rare it is."""
    result = found(pair("spam", "toxic"), pair("spam", "hate"), pair("toxic", "toxic"), pair("spam", "toxic"))
    assert result.labels == ("ok", "toxic", "spam", "hate")
    assert result.table == ((0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 1), (0, 0, 0, 0))
