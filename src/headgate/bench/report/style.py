"""The look of a report: quiet, for large and small screens, light and dark, and paper."""

from __future__ import annotations

from headgate.bench.report.colours import variables

_RULES = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 1.0625rem/1.6 Charter, "Bitstream Charter", "Iowan Old Style", Georgia, "DejaVu Serif", serif; }
main { max-width: 64rem; margin: 0 auto; padding: 3.5rem 1.25rem 6rem; }
h1, h2, h3, p, nav, details { max-width: 44rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 1rem; font-weight: 600; letter-spacing: -0.01em; }
h2 { font-size: 1.4rem; line-height: 1.3; margin: 4rem 0 0.75rem; font-weight: 600; }
h3 { font-size: 1.08rem; margin: 2.25rem 0 0.4rem; font-weight: 600; }
p { margin: 0 0 1rem; }
.lead { font-size: 1.15rem; color: var(--ink); }
.note, figcaption, caption, nav, table, summary, .legend, .badge {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.note, figcaption { font-size: 0.86rem; line-height: 1.5; color: var(--soft); }
code { font: 0.88em ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
a { color: var(--headgate); text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
nav { margin: 2rem 0 0; padding: 1rem 0; border: solid var(--line); border-width: 1px 0; font-size: 0.9rem; }
nav ol { margin: 0; padding: 0 0 0 1.4rem; columns: 17rem 2; column-gap: 2.5rem; }
nav li { padding: 0.12rem 0; break-inside: avoid; }
nav a { color: inherit; text-decoration: none; }
nav a:hover { text-decoration: underline; }
.scroll { overflow-x: auto; margin: 1rem 0 1.5rem; }
table { border-collapse: collapse; font-size: 0.86rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.4rem; }
th { text-align: left; font-weight: 600; color: var(--soft); white-space: nowrap; }
th, td { padding: 0.42rem 1.1rem 0.42rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td { min-width: 3.2rem; }
.figure { text-align: right; white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: 0.92em; }
tr.mute td { color: var(--soft); }
.targets td:nth-child(2) { min-width: 15rem; }
tr.ours td { font-weight: 600; }
.badge { display: inline-block; padding: 0 0.5em; border-radius: 0.25em; border: 1px solid currentColor;
  font-size: 0.82rem; font-weight: 600; white-space: nowrap; }
.badge.good { color: var(--good); }
.badge.bad { color: var(--ground); background: var(--bad); border-color: var(--bad); }
.badge.mute { color: var(--soft); border-style: dashed; font-weight: 400; }
figure { margin: 1.25rem 0 2rem; break-inside: avoid; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 0.6rem 1.4rem; }
.panels.two { max-width: 42rem; }
.panels svg { width: 100%; max-width: 21rem; height: auto; display: block; overflow: visible; }
figcaption { margin-top: 0.5rem; max-width: 44rem; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.84rem; margin: 0 0 0.7rem; padding: 0;
  list-style: none; }
.legend svg { width: 1.7rem; height: 0.7rem; margin-right: 0.45rem; vertical-align: baseline; }
details { max-width: none; margin: 1rem 0; }
summary { cursor: pointer; font-size: 0.9rem; color: var(--headgate); }
@media (max-width: 40rem) {
  main { padding: 1.75rem 1rem 4rem; }
  body { font-size: 1rem; }
  h1 { font-size: 1.65rem; }
  h2 { margin-top: 3rem; }
  th, td { padding-right: 0.7rem; }
  .targets td:nth-child(2) { min-width: 11rem; }
  td small { white-space: normal; }
}
@media print {
  html { font-size: 9pt; }
  body { background: none; }
  .panels { grid-template-columns: repeat(3, 1fr); }
  .panels.two { grid-template-columns: repeat(2, 1fr); max-width: 67%; }
  h2 { margin-top: 2.5rem; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  .badge, .legend svg, figure svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

_LIGHT = "--ground: #fdfdfb; --soft: #5c676d; --line: #e1e4e3;"
_DARK = "--ground: #14181a; --soft: #97a3a8; --line: #2b3235;"

CSS = (
    f":root {{ {_LIGHT} {variables(dark=False)} }}\n"
    # Paper is white, whatever the screen was.
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK} {variables(dark=True)} }} }}"
    f"{_RULES}"
)
