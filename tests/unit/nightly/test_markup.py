"""HTML from hostile text: a parser finds the elements that were meant, and the text that was given."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.markup import Markup, escaped, joined, tag, verbatim_style

HOSTILE = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [
                *("<script>alert(1)</script>", "</td>", '"', "'", "&", "&lt;", "<!--", "-->", "<![CDATA[", "]]>"),
                *("</style>", "<img src=x onerror=alert(1)>", "\x00", "\u202e", "\u2066", "\ud800", "javascript:", "`"),
            ]
        ),
        max_size=8,
    ).map("".join),
)


VOID = {"meta", "link"}


class Reader(HTMLParser):
    """What a parser makes of a page: elements with their attributes, and all text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    assert reader.open == []
    return reader


def cleaned(text: str) -> str:
    """What is to be seen of a text: everything but what no page may hold."""
    return read(escaped(text)).words[0] if text else ""


@given(HOSTILE, HOSTILE)
def test_text_stays_text(text: str, value: str) -> None:
    """One element, one attribute, one text: whatever they hold."""
    found = read(tag("p", text, title=value))
    assert found.elements == [("p", {"title": cleaned(value)})]
    assert "".join(found.words) == cleaned(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zl", "Zp", "Cn"])))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    """No character of any language is lost."""
    assert cleaned(text) == text


@pytest.mark.parametrize(
    "text", ["\x00", "\x1b", "\x7f", "\x85", "\ud800", "\ufffe", "\u202e", "\u2066", "\u200f", "\u2028"]
)
def test_what_would_deceive_is_replaced(text: str) -> None:
    """Controls, halves of characters, marks that turn the direction of writing."""
    assert escaped(f"a{text}b") == "a�b"


def test_markup_goes_through_once() -> None:
    """What `tag` made is not escaped again; None is nothing, a number is text."""
    inner = tag("b", 1)
    assert tag("p", inner, None, "<", 2.5) == "<p><b>1</b>&lt;2.5</p>"
    assert joined(inner, "&") == "<b>1</b>&amp;"
    assert isinstance(joined("a"), Markup)


def test_attributes_are_written_as_html_calls_them() -> None:
    """A trailing underscore and None go; underscores are hyphens."""
    assert tag("meta", http_equiv="x", class_="y", id=None) == '<meta http-equiv="x" class="y">'


@pytest.mark.parametrize("name", ["p onload", "", "1p", "p>"])
def test_a_name_is_never_text(name: str) -> None:
    """Of an element or an attribute: refused."""
    with pytest.raises(ValueError, match="no element's name"):
        tag(name)
    with pytest.raises(ValueError, match="no attribute's name"):
        tag("p", **{name: "x"})


def test_a_style_holds_no_tag() -> None:
    """It could end itself."""
    assert verbatim_style("p{color:red}") == "<style>p{color:red}</style>"
    with pytest.raises(ValueError, match="must not hold a tag"):
        verbatim_style("</style>")
