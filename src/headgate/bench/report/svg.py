"""Matplotlib figures as small inline SVG that takes its colours and its font from the page."""

from __future__ import annotations

import html
import io
import re
from contextlib import AbstractContextManager
from typing import Any

from headgate.bench.report.colours import SHADES
from headgate.bench.report.page import ID_MARK, Html
from headgate.errors import HeadgateError

_PLACEHOLDERS = {role: f"#0f{index:02x}f0" for index, role in enumerate(SHADES)}
"""Matplotlib wants real colours; these, which nobody would choose, become CSS variables in the SVG."""

_SETTINGS = {
    "svg.fonttype": "none",  # text stays text: small, and in the page's font
    "svg.hashsalt": "headgate",  # the same figures give the same file
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.bottom": False,
    "ytick.left": False,
    "axes.axisbelow": True,
}

_INK = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")


def colour(role: str) -> str:
    """What to give Matplotlib for a role of :data:`SHADES`."""
    return _PLACEHOLDERS[role]


def drawing() -> AbstractContextManager[Any]:
    """The settings to draw with."""
    matplotlib = _matplotlib()
    inks = dict.fromkeys(_INK, colour("ink")) | {"grid.color": colour("faint"), "axes.edgecolor": colour("faint")}
    context: AbstractContextManager[Any] = matplotlib.rc_context(_SETTINGS | inks)
    return context


def new_figure(width_in: float, height_in: float) -> Any:
    """A figure without pyplot: nothing global, nothing to close."""
    _matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in))


def to_svg(figure: Any, label: str) -> Html:
    """The figure as an ``<svg>`` for a page; `label` says in words what it shows."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Html(_slim(buffer.getvalue(), label))


def _slim(svg: str, label: str) -> str:
    """Without metadata, unused ids and digits that nobody sees."""
    box = re.search(r'viewBox="([^"]+)"', svg)
    inner = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inner, flags=re.DOTALL)
    inner = re.sub(r"<defs>\s*</defs>", "", inner).replace("xlink:href", "href")
    inner = _own_ids(inner)
    inner = re.sub(r"<[^>]+>", lambda tag: re.sub(r"-?\d+\.\d{2,}", _shorter, tag[0]), inner)
    inner = _page_font(inner)
    for role, placeholder in _PLACEHOLDERS.items():
        inner = inner.replace(placeholder, f"var(--{role})")
    view = box[1] if box else "0 0 1 1"
    return f'<svg viewBox="{view}" role="img" aria-label="{html.escape(label, quote=True)}">{_tight(inner)}</svg>'


def _own_ids(inner: str) -> str:
    """Ids that are referred to get a mark that the page turns into a number, since it has many figures."""
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', inner))
    inner = re.sub(r' id="([^"]+)"', lambda found: f' id="{ID_MARK}{found[1]}"' if found[1] in used else "", inner)
    return re.sub(r'(href="|url\()#', rf"\g<1>#{ID_MARK}", inner)


def _page_font(inner: str) -> str:
    """Size and weight stay, the family is the page's. Older Matplotlibs write the shorthand ``font:``."""
    inner = re.sub(r"font: (?:(\d+|bold) )?([\d.]+px)[^;\"]*", r"font-weight: \1; font-size: \2", inner)
    return re.sub(r"font-family: [^;\"]*;? ?|font-weight: ; ", "", inner)


def _shorter(number: re.Match[str]) -> str:
    """A tenth of a point is finer than a screen shows."""
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _tight(inner: str) -> str:
    return re.sub(r"\s*\n\s*", "\n", inner).strip()


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise HeadgateError("pictures need matplotlib: in a checkout, pip install '.[bench]'") from error
    return matplotlib
