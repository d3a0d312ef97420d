"""How a recheck's report looks: one style sheet, light and dark, for screens from 320 pixels on and for paper.

Every colour of text has a contrast of at least 4.5 to its ground in either scheme (WCAG 2.2, 1.4.3), every mark of a
chart of at least 3 (1.4.11). Misses and false alarms differ by place and pattern of lines too, never by colour alone.
"""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root{color-scheme:light dark;--ground:#fff;--panel:#f5f6f8;--ink:#1b1f24;--quiet:#56606c;--line:#d3d8de;
--light:#1d5fbf;--heavy:#7a3fa8;--before:#68727d;--miss:#b3261e;--alarm:#8a5800;--good:#1c6b3c;--volume:#8a94a0;
--heat1:#e8eef8;--heat2:#cfdef3;--heat3:#aecaee;--off1:#fdecea;--off2:#f9d4d0;--off3:#f3b4ae}
@media (prefers-color-scheme:dark){:root{--ground:#13161a;--panel:#1c2026;--ink:#e8ebef;--quiet:#a4aeb9;--line:#363d46;
--light:#7fb0f5;--heavy:#c79bf0;--before:#929ca7;--miss:#ff8a80;--alarm:#e5ad52;--good:#74c893;--volume:#6f7985;
--heat1:#1b2a40;--heat2:#203755;--heat3:#26466f;--off1:#3a1e1d;--off2:#4f2422;--off3:#662b28}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","Noto Sans CJK SC","Liberation Sans",sans-serif;overflow-wrap:anywhere}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2.25rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.25rem 0 .35rem}
p,ul,dl{margin:.35rem 0 .75rem;max-width:46rem}
.quiet,figcaption{color:var(--quiet);font-size:.9rem}
.notice{border:1px solid var(--alarm);border-left-width:.35rem;background:var(--panel);padding:.6rem .9rem;
border-radius:.3rem}
.tiles{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:.75rem;margin:1rem 0;padding:0;list-style:none;
max-width:none}
@media (min-width:48rem){.tiles{grid-template-columns:repeat(4,minmax(0,1fr))}}
.tile{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .85rem}
.tile b{display:block;font-size:1.55rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--quiet);font-size:.85rem}
.miss{color:var(--miss)}.alarm{color:var(--alarm)}.good{color:var(--good)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.25rem 2rem}
figure{margin:0;min-width:0}
svg{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",
sans-serif}
svg text{fill:var(--quiet)}
.axis{stroke:var(--quiet);stroke-width:1}.grid{stroke:var(--line);stroke-width:1}
.volume{fill:var(--volume)}.missed{fill:var(--miss)}.alarmed{fill:none;stroke:var(--alarm);stroke-width:1.5}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}
.curve.light{stroke:var(--light)}.curve.heavy{stroke:var(--heavy);stroke-dasharray:7 3}
.curve.before{stroke:var(--before);stroke-dasharray:2 3}
.track{fill:var(--line)}.interval{stroke:var(--light);stroke-width:3}.point{fill:var(--light)}
.scroll{overflow-x:auto;max-width:100%;border-radius:.3rem}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--light);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.92rem;overflow-wrap:break-word}
caption{text-align:left;padding:.9rem .6rem .3rem;font-weight:600}
caption span{display:block;font-weight:400;color:var(--quiet);font-size:.9rem}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{color:var(--quiet);font-weight:600}tbody th{font-weight:400;min-width:8rem}
.matrix th{min-width:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.text{min-width:14rem;max-width:34rem;overflow:hidden;contain:paint;overflow-wrap:anywhere}
.bar{width:12rem;min-width:8rem;vertical-align:middle}
.matrix{width:auto}.matrix td,.matrix th{border:1px solid var(--line)}
.h1{background:var(--heat1)}.h2{background:var(--heat2)}.h3{background:var(--heat3)}
.o1{background:var(--off1)}.o2{background:var(--off2)}.o3{background:var(--off3)}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--quiet);font-size:.9rem}
dt{font-weight:600}dd{margin:0 0 .5rem}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,"Liberation Mono",monospace}
@media print{:root{color-scheme:light}body{font-size:11pt}main{max-width:none;padding:0}.scroll{overflow:visible}
section,figure,tr,.tile{break-inside:avoid}*{print-color-adjust:exact}}
"""
