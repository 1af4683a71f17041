"""A dialog as a piece of HTML, for notebooks: the matrix where it stands, and how it came there."""

from __future__ import annotations

from html import escape
from typing import Any

from margrave.confusion import Confusion
from margrave.steer._reply import Reply

_LAST = 6  # steps that are shown
_STYLE = (
    "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0",
    "padding:0.3em 0.8em;text-align:right;border:1px solid rgba(128,128,128,0.35)",
)
_SHADES = {"right": "46,125,90", "wrong": "190,60,50", "rejected": "150,120,40"}


def dialog_html(dialog: Any) -> str:
    """A dialog: its matrix with what changed, and its last steps."""
    reply: Reply = dialog.reply
    said = "Start" if reply.preference is None else _asked(reply)
    n = f"{reply.after.n:,} tuning samples"
    members = escape(", ".join(dialog.members))
    parts = [
        f"<p><strong>{said}</strong>, on {n}; members: {members}</p>",
        matrix_html(reply.after, reply.before),
        _steps(dialog),
        "<p><small><code>prefer(...)</code> asks, <code>open()</code> opens the studio on it, "
        "<code>accept()</code> certifies.</small></p>",
    ]
    return f"<div>{''.join(parts)}</div>"


def matrix_html(matrix: Confusion, before: Confusion | None = None) -> str:
    """A confusion matrix as a table, with differences to another."""
    table, cell = _STYLE
    heads = [*(f"called {escape(str(label))}" for label in matrix.classes), "rejected"]
    head = "".join(f'<th scope="col" style="{cell}">{text}</th>' for text in ("", *heads))
    rows = []
    for r, label in enumerate(matrix.classes):
        cells = [f'<th scope="row" style="{cell}">true {escape(str(label))}</th>']
        size = max(int(matrix.counts[r].sum()), 1)
        for c, count in enumerate(matrix.counts[r].tolist()):
            kind = "rejected" if c == len(matrix.classes) else "right" if c == r else "wrong"
            shade = f"background:rgba({_SHADES[kind]},{0.08 + 0.3 * count / size:.2f})"
            moved = 0 if before is None else count - int(before.counts[r, c])
            change = f" <small>({moved:+,})</small>" if moved else ""
            cells.append(f'<td style="{cell};{shade}">{count:,}{change}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="{table}"><tr>{head}</tr>{"".join(rows)}</table>'


def _asked(reply: Reply) -> str:
    said = "met" if reply.met else f"not met, {reply.shortfall:g} short"
    return f"{escape(str(reply.preference))}: {said} (way: {escape(reply.way)})"


def _steps(dialog: Any) -> str:
    """The last steps, the current one marked."""
    history = dialog.history
    if len(history) == 1:
        return ""
    first = max(0, len(history) - _LAST)
    items = []
    for number, reply in enumerate(history[first:], start=first):
        text = "start" if reply.preference is None else _asked(reply)
        items.append(
            f"<li>{f'<strong>{text}</strong>' if number == dialog.position else text}</li>"
        )
    return f'<ol start="{first}">{"".join(items)}</ol>'
