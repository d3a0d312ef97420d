"""The nightly report in Chromium: what a person would see, on a phone, on a desk, in the dark, and on paper.

The page is that of a fixture day (`tests/unit/nightly/fixture.py`); its pictures are left in `build/browser/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import looks, png
from tests.browser.chromium import HOW, Page, installed, opened
from tests.unit.nightly.fixture import seeded
from workbench.stack.layout import project_root

FOLDER = project_root() / "build/browser"
WIDTHS = (320, 360, 768, 1280)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of whatever Chromium is installed."""
    program = installed()
    if program is None:
        pytest.skip(f"no Chromium is installed: {HOW}")
    with opened(program) as found:
        yield found


@pytest.fixture(scope="module")
def report() -> Path:
    """The fixture day's report as a file, as `inferlane nightly report --output` writes it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / "report.html"
    file.write_text(seeded().page())
    return file


def test_it_loads_without_a_word_or_a_request(page: Page, report: Path) -> None:
    """Nothing in the console, no violation of its own policy, nothing fetched but the file itself."""
    page.show(report, 1280)
    names = [name for name, _ in page.events]
    assert "Log.entryAdded" not in names, page.events
    assert "Runtime.consoleAPICalled" not in names
    assert "Runtime.exceptionThrown" not in names
    asked = {params["request"]["url"] for name, params in page.events if name == "Network.requestWillBeSent"}
    assert {url for url in asked if not url.startswith("data:")} == {report.as_uri()}


def test_everything_is_there(page: Page, report: Path) -> None:
    """Each section with its tables; what was captured has become text, not elements."""
    page.show(report, 1280)
    shape = page.evaluate(looks.SHAPE)
    assert shape["title"] == "Recheck of moderation, 2026-12-01"
    assert (shape["scripts"], shape["italics"], shape["foreign"]) == (0, 0, [])
    assert shape["tiles"] == 8
    assert shape["sections"][:2] == ["Where the models disagree", "Through the day, and by score"]
    assert len(shape["sections"]) == 7
    assert dict(shape["tables"])["By hour of the day, Asia/Shanghai"] == 25
    assert page.evaluate("document.body.innerText.includes(\"<script>alert('x')</script>\")")


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_its_window(page: Page, report: Path, width: int) -> None:
    """From a small phone to a desk: nothing sticks out, no label lies over another, none is too small to read."""
    page.show(report, width)
    assert page.evaluate(looks.WIDER) == []
    assert page.evaluate(looks.CROSSING) == []
    assert page.evaluate(looks.SMALL) == []
    assert page.evaluate(looks.TALL) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(page: Page, report: Path, scheme: str) -> None:
    """A contrast of at least 4.5, with everything unfolded."""
    page.show(report, 1280, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    told = page.evaluate(looks.FAINT)
    assert told["seen"] > 300
    assert told["found"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn(page: Page, report: Path, scheme: str) -> None:
    """Both, in view, and in them the marks: of every kind some pixels, and none that covers it all."""
    page.show(report, 1280, scheme=scheme)
    charts, colours = page.evaluate(looks.CHARTS), page.evaluate(looks.COLOURS)
    assert set(charts) == {"chart-hours", "chart-scores"}
    marks = {
        "chart-hours": (".missed", ".alarmed", ".volume"),
        "chart-scores": (".curve.light", ".curve.heavy", ".curve.before"),
    }
    for name, box in charts.items():
        assert box["width"] > 300
        assert box["height"] > 100
        seen = png.read(page.screenshot(box, scale=0.75)).colours()
        whole = sum(seen.values())
        for mark in marks[name]:
            (red, green, blue) = colours[mark]
            count = sum(
                number for (r, g, b), number in seen.items() if abs(r - red) + abs(g - green) + abs(b - blue) <= 24
            )
            assert 20 <= count <= 0.4 * whole, (name, mark, count, whole)


def test_it_is_taken_down_as_pictures(page: Page, report: Path) -> None:
    """Whole, for people: neither blank nor cut."""
    for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light")):
        page.show(report, width, scheme=scheme)
        data = page.screenshot()
        (FOLDER / f"report-{width}-{scheme}.png").write_bytes(data)
        height = page.evaluate("document.documentElement.scrollHeight")
        small = png.read(page.screenshot({"x": 0, "y": 0, "width": width, "height": height}, scale=0.1))
        assert small.height == pytest.approx(height / 10, abs=2)
        assert len(small.colours()) > 50
        ground = small.rows[0][0]
        assert (sum(ground) > 600) == (scheme == "light")
        inked = [any(pixel != ground for pixel in row) for row in small.rows]
        assert sum(inked) > 0.5 * len(inked)


def test_it_prints(page: Page, report: Path) -> None:
    """A few sheets, on white."""
    page.show(report, 1280, scheme="light")
    data = page.pdf()
    (FOLDER / "report.pdf").write_bytes(data)
    assert data.startswith(b"%PDF-")
    assert 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page/") <= 12
