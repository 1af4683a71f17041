"""What a dialog answers: frozen, and readable by itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from math import ceil, floor
from typing import Any

from margrave.confusion import Bound, Confusion, Preference
from margrave.martingale import Tuning
from margrave.steer._certificate import Change, list_changes
from margrave.steer._steered import SteeredClassifier
from margrave.steer._tuning_data import Candidate


@dataclass(frozen=True)
class Reply:
    """What became of a request, on the tuning samples.

    Attributes
    ----------
    preference : Preference or None
        What was asked, or still holds after a step of the program; None if nothing was yet.
    met : bool
        Whether the model keeps to it on the tuning samples.
    before, after : Confusion
        The tuning samples, by the model before and by this one.
    strategy : str
        How it was found: "move", "reject", "reweight", "select", "retune"; "nodes" or "grow" for
        a step of the program; or "start".
    seconds : float
        How long it took.
    n_candidates : int
        How many options were compared.
    final : bool
        Whether all ways have been tried; a better reply may follow otherwise.
    cancelled : bool
        Whether the user stopped the search.
    note : str or None
        For a step of the program, what was done.
    node_results : tuple of (votes, Tuning)
        For "nodes", what became of each node that was asked.
    """

    preference: Preference | None
    met: bool
    before: Confusion
    after: Confusion
    strategy: str
    seconds: float
    n_candidates: int
    final: bool
    cancelled: bool = False
    note: str | None = None
    node_results: tuple[tuple[tuple[int, ...], Tuning], ...] = field(default=(), repr=False)
    candidate: Candidate = field(repr=False, compare=False, kw_only=True)

    @property
    def model(self) -> SteeredClassifier:
        """The model, which promises nothing yet."""
        return SteeredClassifier._from_parts(
            self.candidate.scorer,
            self.candidate.decision,
            preference=None if self.preference is None else str(self.preference),
            positive=self.after.positive,
        )

    @property
    def binding(self) -> Bound | None:
        """The bound that is missed by most samples, or has fewest to spare."""
        return None if self.preference is None else self.preference.binding(self.after)

    @property
    def shortfall(self) -> float:
        """How many samples are in the wrong place; 0 if the preference is met."""
        return 0.0 if self.preference is None else self.preference.shortfall(self.after)

    @property
    def nearest(self) -> Confusion | None:
        """The nearest matrix that was reached, if the preference is not met."""
        return None if self.met else self.after

    @property
    def instead(self) -> Preference | None:
        """What was asked, with the bounds that are not met loosened to what was reached.

        None if the preference is met, or nothing of it is left.
        """
        if self.met or self.preference is None:
            return None
        loosened = [_loosened(bound, self.after) for bound in self.preference.bounds]
        kept = [str(bound) for bound in loosened if bound is not None]
        return Preference(*kept) if kept else None

    @property
    def changes(self) -> tuple[Change, ...]:
        """Cells of mistakes (and the rejected) that are not as before."""
        return list_changes(self.before, self.after)

    def __str__(self) -> str:
        if self.preference is None and self.note is None:
            return f"Start, on {self.after.n} tuning samples:\n{self.after}"
        plural = "" if self.n_candidates == 1 else "s"
        took = f"{self.seconds:.2f} s, {self.n_candidates} candidate{plural}"
        more = "" if self.final else ", more may come"
        stopped = ", cancelled" if self.cancelled else ""
        first, *others = self._said
        lines = [f"{first} (way: {self.strategy}; {took}{more}{stopped})", *others]
        lines += [f"  {line}" for line in str(self.after).splitlines()]
        lines += [f"  {change}" for change in self.changes]
        return "\n".join(lines)

    @property
    def _said(self) -> list[str]:
        """What was done with the program, and whether what was asked is met."""
        noted = [] if self.note is None else [self.note]
        if self.preference is None:
            return noted
        if self.met:
            spent = self.note is None and self.preference.met(self.before)
            said = "met before, and what it allows is spent" if spent else "met"
        else:
            said = f"not met: the nearest is {self.shortfall:g} short, '{self.binding}' binds"
        return [*noted, f"{self.preference}: {said}"]


@dataclass(frozen=True)
class Comparison:
    """Two steps of a dialog side by side.

    Attributes
    ----------
    first, second : Reply
        The steps.
    n_changed : int
        How many tuning samples they answer differently.
    n_only_first, n_only_second : int
        How many only the first, or only the second, answers right.
    """

    first: Reply
    second: Reply
    n_changed: int
    n_only_first: int
    n_only_second: int

    @property
    def changes(self) -> tuple[Change, ...]:
        """Cells of mistakes (and the rejected) that are not the same."""
        return list_changes(self.first.after, self.second.after)

    def __str__(self) -> str:
        lines = [f"{_asked(self.first)} -> {_asked(self.second)}"]
        lines += [f"  {change}" for change in self.changes]
        lines.append(
            f"  {self.n_changed} of {self.first.after.n} answers differ: {self.n_only_first} right "
            f"before only, {self.n_only_second} right after only"
        )
        return "\n".join(lines)


def _loosened(bound: Bound, matrix: Confusion) -> Bound | None:
    """A bound that a matrix meets: as it is, or up to the matrix; None for a share of nothing.

    Shares are told to a hundredth of a percent.
    """
    if bound.slack(matrix) >= 0:
        return bound
    amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
    if not bound.share:
        return replace(bound, limit=Fraction(amount))
    if not base:
        return None
    rounded = (ceil if bound.at_most else floor)(Fraction(amount, base) * 10_000)
    return replace(bound, limit=Fraction(rounded, 10_000))


def _asked(reply: Reply) -> str:
    return reply.strategy if reply.preference is None else f"{reply.preference} ({reply.strategy})"


_LAST = 6  # steps that are shown
_STYLE = (
    "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0",
    "padding:0.3em 0.8em;text-align:right;border:1px solid rgba(128,128,128,0.35)",
)
_SHADES = {"right": "46,125,90", "wrong": "190,60,50", "rejected": "150,120,40"}


def dialog_html(dialog: Any) -> str:
    """A dialog: its matrix with what changed, and its last steps."""
    reply: Reply = dialog.reply
    said = "Start" if reply.preference is None else _heading(reply)
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


def _heading(reply: Reply) -> str:
    said = "met" if reply.met else f"not met, {reply.shortfall:g} short"
    return f"{escape(str(reply.preference))}: {said} (way: {escape(reply.strategy)})"


def _steps(dialog: Any) -> str:
    """The last steps, the current one marked."""
    history = dialog.history
    if len(history) == 1:
        return ""
    first = max(0, len(history) - _LAST)
    items = []
    for number, reply in enumerate(history[first:], start=first):
        text = "start" if reply.preference is None else _heading(reply)
        items.append(
            f"<li>{f'<strong>{text}</strong>' if number == dialog.position else text}</li>"
        )
    return f'<ol start="{first}">{"".join(items)}</ol>'
