"""A model card: what a steered classifier is, promises and needs, in Markdown."""

from __future__ import annotations

from typing import Any

from margrave.confusion import Confusion
from margrave.steer._selecting import regions_of

LIMITS = (
    "The promise is for samples like the certify samples. When the world changes, `check(X, y)` on "
    "freshly labelled samples raises an alarm, and `recertify(X, y)` sets the promise anew.",
    "It is about shares over many samples, not about one.",
    "Intervals are each at the stated confidence, not all at once.",
    "A file can be changed by who has it: the certificate in it is not signed.",
)
"""What a promise does not say."""

# What Markdown, or a page made from it, would take for more than text.
_MARKS = str.maketrans({"|": "/", "`": "'", "<": "(", ">": ")", "\n": " ", "\r": " ", "#": " "})


def _plain(words: Any) -> str:
    """A user's words as text in a line of Markdown."""
    return str(words).translate(_MARKS)


def model_card(model: Any) -> str:
    """The card of a fitted SteeredClassifier."""
    parts = ["# Model card", _about(model)]
    certificate = model.certificate_
    if certificate is None:
        parts.append("## Promise\n\nNone: this model was not certified.")
    else:
        told = "\n".join(f"- {_plain(promise)}" for promise in certificate.promises)
        notes = "".join(f"\n- {note}" for note in certificate.remarks)
        parts.append(
            f"## Promise\n\nWith confidence {certificate.confidence:.9g}, for new samples drawn as "
            f"the {certificate.confusion.n} certify samples were:\n\n{told}\n\nSet by "
            f"{certificate.route} on samples that no step had seen; certificate "
            f"{certificate.number} on them, issued {certificate.issued}.{notes}"
        )
        parts.append("## Certify samples\n\n" + _table(certificate.confusion, certificate.cells))
        parts.append("## Tuning samples\n\n" + _table(certificate.tuning))
    parts.append("## Limits\n\n" + "\n".join(f"- {limit}" for limit in LIMITS))
    return "\n\n".join(parts) + "\n"


def _about(model: Any) -> str:
    """Classes, members and their weights."""
    scorer = model.scorer_
    labels = ", ".join(f"`{_plain(label)}`" for label in model.classes_.tolist())
    lines = [f"- Classes: {labels}"]
    certificate = model.certificate_
    if certificate is not None:
        if certificate.confusion.positive is not None:
            lines.append(f"- Positive class: `{_plain(certificate.confusion.positive)}`")
        lines.append(f"- Asked for: `{certificate.asked}`; found by the way `{certificate.way}`")
    if model.decision_.rejects:
        lines.append(f"- Gives no answer (`{model.reject_label_}`) where it is in doubt")
    encoder = scorer.panel.encoder
    if encoder is not None:
        lines.append("- Columns: " + "; ".join(encoder.describe().splitlines()))
    weighed = "rank-margin weight"
    regions = regions_of(scorer.combine)
    if regions is not None:
        alone = regions is scorer.combine
        weighed = "share of the tuning samples" if alone else "weight"
        lines.append(
            f"- Regions: {regions.leaves.n}, with one member in charge of each"
            + ("" if alone else "; the score is the mean of theirs and of the committee's")
        )
    told = [
        f"{name} ({type(member).__name__}, {weighed} {weight:.2f})"
        for name, member, weight in zip(
            scorer.panel.names, scorer.panel.members, scorer.weights, strict=True
        )
    ]
    lines.append("- Members: " + ", ".join(told))
    return "## Model\n\n" + "\n".join(lines)


def _table(matrix: Confusion, cells: Any = ()) -> str:
    """A matrix in Markdown, with intervals where there are some."""
    heads = ["", *(f"called {_plain(label)}" for label in matrix.classes), "rejected"]
    intervals = {
        (cell.true, cell.answer): f" ({cell.low:.1%} to {cell.high:.1%})" for cell in cells
    }
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for true in matrix.classes:
        told = [f"{matrix[true, a]}{intervals.get((true, a), '')}" for a in (*matrix.classes, None)]
        rows.append("| " + " | ".join([f"true {_plain(true)}", *told]) + " |")
    return "\n".join(rows)
