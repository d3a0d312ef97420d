"""What is asked of a page while a browser shows it: expressions in JavaScript, each giving a plain value."""

from __future__ import annotations

from typing import Final

WIDER: Final = """
(() => {
  const wide = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
  for (const each of document.querySelectorAll("body *")) {
    const scrolls = each.closest(".scroll");
    if (scrolls && scrolls !== each) continue;
    const box = each.getBoundingClientRect();
    if (box.right > wide + 0.5 || box.left < -0.5) found.push(each.tagName + "." + each.getAttribute("class"));
  }
  return found;
})()
"""
"""Elements beyond the window's edges, but for what scrolls by itself."""

FAINT: Final = """
(() => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = rgb => {
    const [r, g, b] = rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || ["TITLE", "DESC", "title", "desc"].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    seen += 1;
    const drawn = element.closest("svg") && element.tagName === "text" ? style.fill : style.color;
    const pair = [light(parts(drawn).slice(0, 3)), light(ground(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) found.push([walker.currentNode.data.trim().slice(0, 40), Math.round(ratio * 100) / 100]);
  }
  return {seen, found};
})()
"""
"""Texts whose contrast to their ground is below 4.5 (WCAG 2.2, 1.4.3), and how many texts were looked at."""

CROSSING: Final = """
[...document.querySelectorAll("svg[id]")].flatMap(chart => {
  const texts = [...chart.querySelectorAll("text")].map(each => [each.textContent, each.getBoundingClientRect()]);
  const whole = chart.getBoundingClientRect(), found = [];
  texts.forEach(([text, box], i) => {
    if (box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 1) found.push([text]);
    for (const [other, its] of texts.slice(i + 1)) {
      // A quarter of a line's box is leading, which some fonts have more of, and no ink.
      const leading = Math.min(box.height, its.height) / 4;
      const beside = box.right - 1 <= its.left || its.right - 1 <= box.left;
      if (!beside && box.top < its.bottom - leading && its.top < box.bottom - leading) found.push([text, other]);
    }
  });
  return found;
})
"""
"""Labels of charts that lie over each other, or beyond their chart."""

SMALL: Final = """
[...document.querySelectorAll("svg[id] text")].map(each => {
  const chart = each.ownerSVGElement;
  return 12 * chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
}).filter(size => size < 8.5)
"""
"""Sizes of charts' labels below 8.5 pixels."""

TALL: Final = """
[...document.querySelectorAll("tr")].filter(row => row.getBoundingClientRect().height > 300)
  .map(row => row.textContent.slice(0, 60))
"""
"""Rows of tables squeezed into narrow columns."""

CHARTS: Final = """
Object.fromEntries([...document.querySelectorAll("svg[id]")].map(chart => {
  const box = chart.getBoundingClientRect();
  return [chart.id, {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}];
}))
"""
"""Where the charts are, in the page."""

COLOURS: Final = """
Object.fromEntries([[".missed", "fill"], [".alarmed", "stroke"], [".volume", "fill"], [".curve.light", "stroke"],
  [".curve.heavy", "stroke"], [".curve.before", "stroke"]].map(([which, property]) =>
  [which, getComputedStyle(document.querySelector(which))[property].match(/\\d+/g).map(Number)]))
"""
"""The colours of a chart's marks."""

SHAPE: Final = """
({
  title: document.title,
  scripts: document.scripts.length,
  sections: [...document.querySelectorAll("h2")].map(each => each.textContent),
  tables: [...document.querySelectorAll("table")].map(each => [each.caption.firstChild.textContent, each.rows.length]),
  tiles: document.querySelectorAll(".tile").length,
  foreign: performance.getEntriesByType("resource").map(each => each.name),
  italics: document.querySelectorAll("b:not(.tile > b), i, img, a").length,
})
"""
"""What the page is made of, and what it fetched."""
