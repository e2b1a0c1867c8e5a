"""A single static HTML page: sections, tables, figures and notes, with everything escaped and nothing loaded.

Text comes in as `str` and is escaped; only :class:`Html`, which the functions here make, goes in as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.bench.report.style import CSS


class Html(str):
    """Markup that is known to be safe."""

    __slots__ = ()


ID_MARK = "\ue000"
"""Before every id within a picture. A character of no meaning: the page puts the picture's number in its place."""

Text = str | Html
"""What people read; escaped unless it is :class:`Html`."""


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; figures stand on the right, so that their digits line up."""

    title: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A table's row with a kind that colours it: good, bad, mute or nothing."""

    cells: Sequence[Text]
    kind: str = ""


def safe(text: Text) -> Html:
    return text if isinstance(text, Html) else Html(html.escape(text, quote=True))


def join(parts: Iterable[Text], between: str = "") -> Html:
    return Html(between.join(safe(part) for part in parts))


def element(tag: str, *parts: Text, **attributes: str) -> Html:
    """``<tag …>parts</tag>``; `class_` and `aria_label` mean class and aria-label."""
    return Html(f"<{tag}{_attributes(attributes)}>{join(parts)}</{tag}>")


def _attributes(attributes: dict[str, str]) -> str:
    """Those with a value."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value}
    return "".join(f' {name}="{html.escape(value, quote=True)}"' for name, value in named.items())


def paragraph(*parts: Text) -> Html:
    return element("p", *parts)


def note(*parts: Text) -> Html:
    """Small print: how to read it, what to doubt."""
    return element("p", *parts, class_="note")


def heading(text: Text) -> Html:
    """A heading within a section."""
    return element("h3", text)


def strong(text: Text) -> Html:
    return element("strong", text)


def code(text: Text) -> Html:
    return element("code", text)


def badge(text: Text, kind: str) -> Html:
    """A verdict: good, bad or mute."""
    return element("span", text, class_=f"badge {kind}")


def table(
    columns: Sequence[Column | str], rows: Sequence[Row | Sequence[Text]], caption: Text = "", kind: str = ""
) -> Html:
    """A table that scrolls by itself where the screen is too narrow; nothing at all without rows."""
    if not rows:
        return Html("")
    heads = [column if isinstance(column, Column) else Column(column) for column in columns]
    named = [element("th", column.title, class_=_side(column), scope="col") for column in heads]
    body = [_row(row if isinstance(row, Row) else Row(row), heads) for row in rows]
    parts = [element("caption", caption)] if caption else []
    if any(column.title for column in heads):
        parts.append(element("thead", element("tr", *named)))
    inner = element("table", *parts, element("tbody", *body), class_=kind)
    return element("div", inner, class_="scroll", tabindex="0")


def _row(row: Row, heads: Sequence[Column]) -> Html:
    cells = [element("td", cell, class_=_side(head)) for cell, head in zip(row.cells, heads, strict=True)]
    return element("tr", *cells, class_=row.kind)


def _side(column: Column) -> str:
    return "figure" if column.right else ""


def figure(panels: Sequence[Html], caption: Text, legend: Html | None = None) -> Html:
    """Pictures side by side, or below each other on a phone, with one legend and one caption."""
    if not panels:
        return Html("")
    grid = element("div", *panels, class_="panels two" if len(panels) in (2, 4) else "panels")
    return element("figure", *([legend] if legend else []), grid, element("figcaption", caption))


def _number_pictures(body: Html) -> Html:
    """Two pictures may be the same, but no two ids of a page."""
    parts = body.split("<svg ")
    return Html("<svg ".join(part.replace(ID_MARK, f"f{number}-") for number, part in enumerate(parts)))


def details(summary: Text, *parts: Text) -> Html:
    """Folded away until somebody wants it."""
    return element("details", element("summary", summary), *parts)


@dataclass(slots=True)
class Page:
    """A title, a lead, and sections that appear in the table of contents."""

    title: str
    lead: Sequence[Text]
    sections: list[tuple[str, str, Html]] = field(default_factory=list)
    """(anchor, title, content)."""

    def section(self, title: str, *content: Text) -> Page:
        """Add a section, unless there is nothing in it."""
        inside = join(content)
        if inside:
            self.sections.append((self._anchor(title), title, inside))
        return self

    def html(self) -> str:
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
            f"{element('title', self.title)}\n<style>\n{CSS}</style>\n</head>\n"
            f"<body>\n<main>\n{self._body()}\n</main>\n</body>\n</html>\n"
        )

    def write(self, path: Path) -> Path:
        """Write the page, with its folder if need be; returns `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _body(self) -> Html:
        head = element("header", element("h1", self.title), *(element("p", text, class_="lead") for text in self.lead))
        sections = [
            element("section", element("h2", title), inside, id=anchor) for anchor, title, inside in self.sections
        ]
        return _number_pictures(join([head, self._contents(), *sections], "\n"))

    def _contents(self) -> Html:
        links = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title, _ in self.sections]
        return element("nav", element("ol", *links), aria_label="Contents") if links else Html("")

    def _anchor(self, title: str) -> str:
        """From the title; numbered if another section has the same."""
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        taken = {anchor for anchor, _, _ in self.sections}
        return next(name for name in [base, *(f"{base}-{n}" for n in range(2, 1_000))] if name not in taken)
