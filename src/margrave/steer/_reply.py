"""Replies of a dialog, and how a notebook shows a dialog."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from margrave._json import SCHEMA_VERSION, json_ready
from margrave._messages import format_count, name_class
from margrave.confusion import Bound, Confusion, Goal, Preference
from margrave.martingale import Tuning
from margrave.steer._alternatives import Alternative, list_misses, loosen
from margrave.steer._certificate import Change, list_changes
from margrave.steer._steered import SteeredClassifier, make_model
from margrave.steer._tuning_data import Candidate


@dataclass(frozen=True)
class Reply:
    r"""The result of one step of a dialog, measured on the tuning set.

    Attributes
    ----------
    preference : Preference or None
        The preference that was requested. After a step of a martingale program, the preference
        that was in force before; None if there is none yet.
    met : bool
        Whether the model meets the preference on the tuning set.
    before, after : Confusion
        Confusion matrices of the tuning set: of the model before this step, and of this one.
    strategy : str
        The strategy that found the model: "move", "reject", "retune" or the name of your own;
        "nodes" or "grow" for a step of a martingale program; or "start".
    seconds : float
        Duration of the search in seconds.
    n_candidates : int
        Number of candidates that were compared.
    final : bool
        Whether all strategies have been tried. If not, a better reply may follow.
    cancelled : bool
        Whether the user stopped the search.
    note : str or None
        For a step of a martingale program, what was done; or that a request changed nothing.
    node_results : tuple of (votes, Tuning)
        For the strategy "nodes", the result at each node that was tuned.
    levels : int
        For the strategy "grow", the number of levels that were added.
    alternatives : tuple of Alternative
        If two or more limits cannot be met together: this reply itself, if it meets one of them;
        for each limit that it misses (at most the three that it misses by most), what keeps that
        limit or is nearest to it; and the middle. Equal matrices are listed once. Empty if the
        preference is met, or may be met by a better reply.
    candidate : Candidate
        The scores of the tuning set and the decision on them.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> reply = dialog.prefer("fp <= 10, fn <= 40")
    >>> reply.met, reply.shortfall, str(reply.instead)
    (False, 31.0, 'fp <= 40, fn <= 41')
    >>> print(*reply.changes, sep="\n")
    neg predicted pos: 33 -> 40 (+7)
    pos predicted neg: 52 -> 41 (-11)
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
    levels: int = 0
    alternatives: tuple[Alternative, ...] = field(default=(), repr=False)
    candidate: Candidate = field(repr=False, compare=False, kw_only=True)

    @property
    def model(self) -> SteeredClassifier:
        """The model of this step, without a certificate."""
        return make_model(
            self.candidate.scorer,
            self.candidate.decision,
            preference=None if self.preference is None else str(self.preference),
            positive=self.after.positive,
        )

    @property
    def goal(self) -> Goal | None:
        """What was minimised among the decisions that meet the limits; None before a request."""
        return None if self.preference is None else self.preference.goal(self.after)

    def settles(self, wanted: Preference) -> bool:
        """Whether a preference has the same goal, and only adds limits that are met already."""
        before = self.preference
        return (
            before is not None
            and self.final
            and not self.cancelled
            and set(before.bounds) < set(wanted.bounds)
            and self.goal == wanted.goal(self.after)
            and wanted.met(self.after)
        )

    @property
    def binding(self) -> Bound | None:
        """The limiting constraint: the bound missed by most samples, or with the least slack."""
        return None if self.preference is None else self.preference.binding(self.after)

    @property
    def shortfall(self) -> float:
        """The number of samples by which the preference is missed; 0 if it is met."""
        return 0.0 if self.preference is None else self.preference.shortfall(self.after)

    @property
    def nearest(self) -> Confusion | None:
        """The nearest confusion matrix that was found; None if the preference is met."""
        return None if self.met else self.after

    @property
    def instead(self) -> Preference | None:
        """An achievable preference: the bounds that are not met are loosened to what was found.

        None if the preference is met, or if no bound is left.
        """
        if self.met or self.preference is None:
            return None
        return loosen(self.preference, self.after)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reply costs: classes that are never predicted, and more errors in total."""
        predicted = self.after.counts.sum(axis=0)
        reason = ", because no other decision that was found meets the limits" if self.met else ""
        warnings = [
            f"No sample is predicted {name_class(label)}{reason}."
            for label, n in zip(self.after.classes, predicted, strict=False)
            if n == 0
        ]
        before, after = self.before.n_errors, self.after.n_errors
        if after > before:
            warnings.append(
                f"Total errors rise from {before:,} to {after:,} ({after - before:+,})."
            )
        return tuple(warnings)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The cells of errors and of rejected samples whose counts this step changed."""
        return list_changes(self.before, self.after)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member in the score."""
        scorer = self.candidate.scorer
        return dict(zip(scorer.committee.names, scorer.weights.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Describe the reply in values that JSON can hold.

        Returns
        -------
        dict
            With the key ``schema_version`` and the attributes by their names. ``preference`` and
            ``instead`` are as in :meth:`margrave.Preference.to_dict` or None, ``before`` and
            ``after`` as in :meth:`margrave.Confusion.to_dict`, ``goal`` and ``binding`` are texts
            or None, ``changes`` is a list of dictionaries with the keys true, predicted, before and
            after, ``alternatives`` a list of dictionaries (see :meth:`Alternative.to_dict`).
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "preference": None if self.preference is None else self.preference.to_dict(),
            "goal": None if self.goal is None else str(self.goal),
            "met": self.met,
            "shortfall": self.shortfall,
            "binding": None if self.binding is None else str(self.binding),
            "instead": None if self.instead is None else self.instead.to_dict(),
            "strategy": self.strategy,
            "seconds": round(self.seconds, 3),
            "n_candidates": self.n_candidates,
            "final": self.final,
            "cancelled": self.cancelled,
            "note": self.note,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "changes": [json_ready(asdict(change)) for change in self.changes],
            "warnings": list(self.warnings),
            "alternatives": [alternative.to_dict() for alternative in self.alternatives],
            "weights": self.weights,
        }

    def __str__(self) -> str:
        if self.preference is None and self.note is None:
            return f"Start, on {self.after.n:,} samples of the tuning set:\n{self.after}"
        plural = "" if self.n_candidates == 1 else "s"
        search = f"{self.seconds:.2f} s, {self.n_candidates:,} candidate{plural}"
        search += "" if self.final else ", a better reply may follow"
        search += ", cancelled" if self.cancelled else ""
        first, *others = self._outcome
        lines = [f"{first} (strategy: {self.strategy}; {search})", *others]
        lines += [f"  {line}" for line in str(self.after).splitlines()]
        lines += [f"  {change}" for change in self.changes]
        lines += [f"  Warning: {warning}" for warning in self.warnings]
        if self.alternatives:
            lines.append("  Alternatives, each with the limits that it misses:")
            lines += [f"    {alternative}" for alternative in self.alternatives]
        return "\n".join(lines)

    @property
    def _outcome(self) -> list[str]:
        """The note, and whether the preference is met: a line for each that there is."""
        notes = [] if self.note is None else [self.note]
        if self.preference is None:
            return notes
        if not self.met:
            misses = list_misses(self.preference, self.after)
            missed = " and ".join(f"'{bound}' by {format_count(n)}" for bound, n in misses)
            short = format_count(self.shortfall)
            outcome = f"not met: the nearest is {short} samples short, missing {missed}"
        elif self.note is None and self.after == self.before:
            outcome = "met; the matrix stays the same"
        else:
            outcome = "met"
        return [*notes, f"{self.preference.limits}, then {self.goal}: {outcome}"]


_MAX_STEPS = 6  # shown in a notebook
_STYLE = (
    "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0",
    "padding:0.3em 0.8em;text-align:right;border:1px solid rgba(128,128,128,0.35)",
)
_SHADES = {"right": "46,125,90", "wrong": "190,60,50", "rejected": "150,120,40"}


def dialog_html(dialog: Any) -> str:
    """Show a dialog in HTML: the confusion matrix, what changed in it, and the last steps."""
    reply: Reply = dialog.reply
    heading = "Start" if reply.preference is None else _heading(reply)
    members = escape(", ".join(dialog.members))
    parts = [
        f"<p><strong>{heading}</strong>, on {reply.after.n:,} samples of the tuning set; "
        f"members: {members}</p>",
        matrix_html(reply.after, reply.before),
        _steps(dialog),
        "<p><small><code>prefer(...)</code> requests a confusion matrix, <code>open()</code> opens "
        "the studio, <code>accept()</code> certifies the model.</small></p>",
    ]
    return f"<div>{''.join(parts)}</div>"


def matrix_html(matrix: Confusion, before: Confusion | None = None) -> str:
    """Show a confusion matrix as an HTML table, with its differences from another."""
    table, cell = _STYLE
    heads = [*(f"predicted {escape(str(label))}" for label in matrix.classes), "rejected"]
    head = "".join(f'<th scope="col" style="{cell}">{text}</th>' for text in ("", *heads))
    rows = []
    for r, label in enumerate(matrix.classes):
        cells = [f'<th scope="row" style="{cell}">true {escape(str(label))}</th>']
        size = max(int(matrix.counts[r].sum()), 1)
        for c, count in enumerate(matrix.counts[r].tolist()):
            kind = "rejected" if c == len(matrix.classes) else "right" if c == r else "wrong"
            shade = f"background:rgba({_SHADES[kind]},{0.08 + 0.3 * count / size:.2f})"
            difference = 0 if before is None else count - int(before.counts[r, c])
            change = f" <small>({difference:+,})</small>" if difference else ""
            cells.append(f'<td style="{cell};{shade}">{count:,}{change}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="{table}"><tr>{head}</tr>{"".join(rows)}</table>'


def _heading(reply: Reply) -> str:
    outcome = "met" if reply.met else f"not met, {format_count(reply.shortfall)} short"
    return f"{escape(str(reply.preference))}: {outcome} (strategy: {escape(reply.strategy)})"


def _steps(dialog: Any) -> str:
    """List the last steps in HTML, the current one in bold."""
    history = dialog.history
    if len(history) == 1:
        return ""
    first = max(0, len(history) - _MAX_STEPS)
    items = []
    for number, reply in enumerate(history[first:], start=first):
        text = "start" if reply.preference is None else _heading(reply)
        items.append(
            f"<li>{f'<strong>{text}</strong>' if number == dialog.position else text}</li>"
        )
    return f'<ol start="{first}">{"".join(items)}</ol>'
