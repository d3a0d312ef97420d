"""The two pattern languages: what a path or a wildcard matches, takes and covers."""

from __future__ import annotations

import pytest

from functions.core.document import DocumentError
from functions.core.patterns import PathPattern, arn_covers, arn_match, covers, media_type, wildcard_match


def test_a_pattern_is_parsed_into_segments_and_names() -> None:
    """Literals, `*` for one segment whether named or not, and whether the rest is open."""
    assert PathPattern.of("/v1/{model}/*/x", ()) == PathPattern(
        "/v1/{model}/*/x", ("v1", "*", "*", "x"), ("", "model", "", ""), open_end=False
    )
    assert PathPattern.of("/a/**", ()) == PathPattern("/a/**", ("a",), ("",), open_end=True)
    assert PathPattern.of("/**", ()) == PathPattern("/**", (), (), open_end=True)
    assert PathPattern.of("/", ()) == PathPattern("/", ("",), ("",), open_end=False)
    assert PathPattern.of("/{a_1}/{b}", ()).names == ("a_1", "b")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a/b", "a path starts with /, found 'a/b'"),
        ("a" * 70, f"a path starts with /, found '{'a' * 60}'"),
        ("/**/a", "** may only stand for the rest, at the end"),
        ("/**/**", "** may only stand for the rest, at the end"),
        ("/a*", "segment 'a*' must be literal, {name}, * or **"),
        ("/***", "segment '***' must be literal, {name}, * or **"),
        ("/x{a}", "segment 'x{a}' must be literal, {name}, * or **"),
        ("/a}", "segment 'a}' must be literal, {name}, * or **"),
        ("/{a", "segment '{a' must be literal, {name}, * or **"),
        ("/{A}", "segment '{A}' must be literal, {name}, * or **"),
        ("/{1}", "segment '{1}' must be literal, {name}, * or **"),
        ("/{}", "segment '{}' must be literal, {name}, * or **"),
        ("/ok/" + "{" * 70, f"segment '{'{' * 60}' must be literal, {{name}}, * or **"),
        ("/{a}/x/{b}/{a}", "a name is captured twice in '/{a}/x/{b}/{a}'"),
        ("/{a}/{a}/" + "x" * 70, f"a name is captured twice in '/{{a}}/{{a}}/{'x' * 51}'"),
        ("", "expected text, found an empty one"),
    ],
)
def test_what_is_no_path_pattern_is_refused_in_these_words(text: str, cause: str) -> None:
    """At the place where it stands."""
    with pytest.raises(DocumentError) as refused:
        PathPattern.of(text, ("routes", 0, "path"))
    assert (refused.value.path, refused.value.cause) == (("routes", 0, "path"), cause)


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("/a/b", "/a/b", {}),
        ("/a/b", "/a/B", None),
        ("/a/b", "/a", None),
        ("/a/b", "/a/b/", None),
        ("/a/b", "/a/b/c", None),
        ("/a/b", "a/b", None),
        ("/a", "xa", None),
        ("/", "/", {}),
        ("/", "/a", None),
        ("/a/*", "/a/x", {}),
        ("/a/*", "/a/", None),
        ("/a/*/c", "/a/x/d", None),
        ("/{x}/b/{y}", "/1/b/2", {"x": "1", "y": "2"}),
        ("/{x}/b", "//b", None),
        ("/a/**", "/a", {}),
        ("/a/**", "/a/", {}),
        ("/a/**", "/a/b/c", {}),
        ("/a/**", "/b", None),
        ("/a/{x}/**", "/a", None),
        ("/a/{x}/**", "/a/1/2/3", {"x": "1"}),
        ("/**", "/", {}),
        ("/*", "/*", {}),
    ],
)
def test_a_path_matches_segment_by_segment(pattern: str, path: str, taken: dict[str, str] | None) -> None:
    """What named segments took, or nothing at all."""
    assert PathPattern.of(pattern, ()).match(path) == taken


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "abc", True),
        ("**", "", True),
        ("?", "a", True),
        ("?", "", False),
        ("?", "ab", False),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*a", "ba", True),
        ("*a", "ab", False),
        ("a*c*e", "abcde", True),
        ("a*c*e", "abcdef", False),
        ("a*b?d", "abxbcd", True),
        ("a*b?d", "abxbd", False),
        ("*ab", "aab", True),
        ("*aab", "aaab", True),
        ("a**b", "ab", True),
        ("a*?", "a", False),
        ("a*?", "ab", True),
        ("*?*", "", False),
        ("abc", "abd", False),
        ("abc", "ab", False),
        ("ab", "abc", False),
        ("a\\*", "a\\x", True),
    ],
)
def test_a_wildcard_matches_the_whole_text(pattern: str, text: str, matches: bool) -> None:
    """`*` any run, `?` exactly one, all else itself."""
    assert wildcard_match(pattern, text) is matches


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "b", False),
        ("a", "ab", False),
        ("ab", "a", False),
        ("*", "", True),
        ("*", "a?b*", True),
        ("?", "a", True),
        ("?", "?", True),
        ("?", "*", False),
        ("?", "", False),
        ("a", "?", False),
        ("a*", "a", True),
        ("a*", "a*", True),
        ("a*", "a?", True),
        ("a*", "*a", False),
        ("a*", "?", False),
        ("*a", "a*", False),
        ("*a*", "bab", True),
        ("*a*", "b*b", False),
        ("a*b", "a*cb", True),
        ("a*b", "a*", False),
        ("*?", "?*", True),
        ("?*", "*?", True),
        ("*?", "*", False),
        ("??", "a?", True),
        ("??", "?", False),
        ("?a*", "*a", False),
        ("**", "*", True),
        ("a**", "a", True),
        ("*a*b*", "ab", True),
        ("*a*b*", "ba", False),
        ("*ab*", "a*b", False),
        ("*b", "a*b", True),
        ("a?*", "a*b", True),
        ("a*?c", "ab*c", True),
        ("a*?c", "a*c", False),
    ],
)
def test_a_wildcard_covers_another_when_it_matches_all_that_the_other_does(
    wide: str, narrow: str, covered: bool
) -> None:
    """Worked out by hand; the property test compares with matching itself."""
    assert covers(wide, narrow) is covered


@pytest.mark.parametrize(
    ("content_type", "found"),
    [
        ("Text/Plain; charset=utf-8; q=1", "text/plain"),
        (" image/PNG ", "image/png"),
        ("application/json", "application/json"),
        (";x", ""),
        ("", ""),
    ],
)
def test_a_media_type_has_neither_parameters_nor_case(content_type: str, found: str) -> None:
    """Up to the first semicolon, without the blanks around it."""
    assert media_type(content_type) == found


ANY_OPS = "arn:aws:iam::*:role/ops-*"


@pytest.mark.parametrize(
    ("pattern", "arn", "matches"),
    [
        (ANY_OPS, "arn:aws:iam::123456789012:role/ops-night", True),
        (ANY_OPS, "arn:aws:iam::9:user/x:role/ops-1", False),
        (ANY_OPS, "arn:aws:iam::9", False),
        ("arn:aws:iam::9:user/*", "arn:aws:iam::9:user/x:role/ops-1", True),
        ("arn:aws*:iam::9:role/r", "arn:aws-cn:iam::9:role/r", True),
        ("arn:aws:iam::9:role/r", "arn:aws:iam::9:role/R", False),
        ("arn:*:role/ops-1", "arn:aws:iam::9:user/x:role/ops-1", True),
        ("*", "arn:aws:iam::9:user/x", True),
    ],
)
def test_a_whole_arn_is_compared_field_by_field(pattern: str, arn: str, matches: bool) -> None:
    """A `*` stays in its field, but in the resource, which may hold colons; a shorter pattern is a plain wildcard."""
    assert arn_match(pattern, arn) is matches


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        (ANY_OPS, "arn:aws:iam::9:role/ops-1", True),
        (ANY_OPS, ANY_OPS, True),
        (ANY_OPS, "arn:aws:iam::9:user/x:role/ops-1", False),
        (ANY_OPS, "arn:*:role/ops-*", False),
        ("arn:*:role/ops-*", ANY_OPS, True),
        ("arn:aws:iam::9:role/*", "arn:aws:iam::*:role/ops", False),
    ],
)
def test_an_arn_pattern_covers_another_field_by_field(wide: str, narrow: str, covered: bool) -> None:
    """As far as it matches all that the other does."""
    assert arn_covers(wide, narrow) is covered
