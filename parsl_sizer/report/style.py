"""How the page of a run looks: on a phone, on a desk and on paper, by day and by night."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --text: #18212c; --muted: #566273; --edge: #d8dee6;
  --accent: #1f5fa8; --bar: #8fb4dc; --area: #a9c7e8; --first: #b03a12; --later: #6b3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11161d; --card: #1a212b; --text: #e6ebf1; --muted: #a3afbd; --edge: #343f4d;
    --accent: #7db4f0; --bar: #3f6c9e; --area: #35597f; --first: #ff9d76; --later: #c9a6f5;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 20px 16px 48px; max-width: 1080px; background: var(--page);
  color: var(--text); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 8px; }
h3 { font-size: 1rem; line-height: 1.35; margin: 0 0 4px; }
p { margin: 0 0 10px; max-width: 75ch; }
a { color: var(--accent); }
.muted, caption, figcaption, dt { color: var(--muted); }
nav ul {
  display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; padding: 0; margin: 12px 0;
}
section {
  background: var(--card); border: 1px solid var(--edge); border-radius: 10px;
  padding: 18px 20px; margin: 16px 0;
}
article { border-top: 1px solid var(--edge); padding: 16px 0 6px; margin-top: 14px; }
dl.facts > div { display: contents; }
dl.facts {
  display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 0;
  font-size: .92rem;
}
dl.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 14px 0 12px; }
dl.tiles > div {
  flex: 1 1 30%; border: 1px solid var(--edge); border-radius: 8px; padding: 10px 12px;
}
dl.tiles dt { font-size: .85rem; }
dl.tiles dd { font-size: 1.3rem; font-weight: 600; line-height: 1.3; }
dl.tiles dd small { display: block; font-size: .82rem; font-weight: 400; color: var(--muted); }
dd { margin: 0; }
table { border-collapse: collapse; width: 100%; margin: 6px 0; font-size: .9rem; }
caption { text-align: left; padding-bottom: 6px; font-size: .88rem; }
th, td {
  padding: 6px 8px; text-align: right; vertical-align: top; border-top: 1px solid var(--edge);
}
th { font-weight: 600; }
thead th { border-top: 0; color: var(--muted); font-weight: 500; vertical-align: bottom; }
thead th, td { overflow-wrap: normal; }
th:first-child, td:first-child, .text { text-align: left; }
td { font-variant-numeric: tabular-nums; }
[data-figure] { white-space: nowrap; }
td.text { overflow-wrap: anywhere; }
tbody tr.sum th, tbody tr.sum td { border-top: 2px solid var(--edge); }
pre {
  margin: 6px 0 10px; padding: 8px 12px; background: var(--page); border-radius: 6px;
  white-space: pre-wrap; font-size: .85rem;
}
figure { margin: 8px 0; }
figcaption { font-size: .88rem; }
details { margin: 8px 0; }
summary { cursor: pointer; color: var(--accent); }
svg.chart { display: block; overflow: visible; }
svg text { font-size: 12px; fill: var(--muted); }
svg text.label { fill: var(--text); }
svg text.label, svg text.height {
  paint-order: stroke; stroke: var(--card); stroke-width: 4px;
  stroke-linejoin: round;
}
.axis, .grid { stroke: var(--edge); stroke-width: 1; }
.bar { fill: var(--bar); }
.area { fill: var(--area); }
.line { fill: none; stroke: var(--first); stroke-width: 2; vector-effect: non-scaling-stroke; }
.mark { stroke-width: 2; }
.mark.first { stroke: var(--first); }
.mark.later { stroke: var(--later); stroke-dasharray: 5 4; }
.key { display: inline-block; margin-right: 18px; }
.key svg { vertical-align: -1px; margin-right: 4px; }
footer { color: var(--muted); font-size: .85rem; }
@media screen and (max-width: 720px) {
  body { padding: 14px 10px 32px; }
  section { padding: 14px 12px; }
  table.cards, .cards tbody, .cards tr, .cards td, .cards th, .cards caption {
    display: block;
  }
  .cards thead {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  }
  .cards tr {
    display: grid; grid-template-columns: repeat(3, 1fr); gap: 4px 12px; padding: 10px 0;
    align-items: end; border-top: 1px solid var(--edge);
  }
  .cards tbody tr th, .cards tbody tr td { border: 0; padding: 0; text-align: left; }
  .cards tr.sum { border-top-width: 2px; }
  dl.tiles { gap: 10px; }
  dl.tiles > div { flex-basis: 40%; }
  dl.tiles dd { font-size: 1.1rem; }
  .cards th { grid-column: 1 / -1; }
  .cards td.text { grid-column: 1 / -1; }
  .cards td::before {
    content: attr(data-label); display: block; color: var(--muted); font-size: .78rem;
    line-height: 1.25;
  }
}
@media print {
  :root {
    --page: #ffffff; --card: #ffffff; --text: #000000; --muted: #444444; --edge: #bbbbbb;
    --accent: #000000; --bar: #a8bfd8; --area: #c4d6ea; --first: #a03000; --later: #50308a;
  }
  html { font-size: 12px; }
  body { max-width: none; padding: 0; font-size: 1rem; }
  section { border: 0; border-top: 1px solid var(--edge); border-radius: 0; padding: 10px 0; }
  article, figure, tr, dl.tiles > div { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  nav, details { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
