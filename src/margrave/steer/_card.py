"""A model card: what a steered classifier is, promises and needs, in Markdown."""

from __future__ import annotations

from typing import Any

from margrave.confusion import Confusion


def model_card(model: Any) -> str:
    """The card of a fitted SteeredClassifier."""
    parts = ["# Model card", _about(model)]
    certificate = model.certificate_
    if certificate is None:
        parts.append("## Promise\n\nNone: this model was not certified.")
    else:
        told = "\n".join(f"- {promise}" for promise in certificate.promises)
        notes = "".join(f"\n- {note}" for note in certificate.remarks)
        parts.append(
            f"## Promise\n\nWith confidence {certificate.confidence:.9g}, for new samples drawn as "
            f"the {certificate.confusion.n} certify samples were:\n\n{told}\n\nSet by "
            f"{certificate.route} on samples that no step had seen; certificate "
            f"{certificate.number} on them, issued {certificate.issued}.{notes}"
        )
        parts.append("## Certify samples\n\n" + _table(certificate.confusion, certificate.cells))
        parts.append("## Tuning samples\n\n" + _table(certificate.tuning))
    parts.append(
        "## Limits\n\n- The promise is for samples like the certify samples. When the world "
        "changes, `check(X, y)` on freshly labelled samples raises an alarm, and `recertify(X, y)` "
        "sets the promise anew.\n- It is about shares over many samples, not about one.\n- "
        "Intervals are each at the stated confidence, not all at once."
    )
    return "\n\n".join(parts) + "\n"


def _about(model: Any) -> str:
    """Classes, members and their weights."""
    scorer = model.scorer_
    labels = ", ".join(f"`{label}`" for label in model.classes_.tolist())
    lines = [f"- Classes: {labels}"]
    certificate = model.certificate_
    if certificate is not None:
        if certificate.confusion.positive is not None:
            lines.append(f"- Positive class: `{certificate.confusion.positive}`")
        lines.append(f"- Asked for: `{certificate.asked}`; found by the way `{certificate.way}`")
    if model.decision_.rejects:
        lines.append(f"- Gives no answer (`{model.reject_label_}`) where it is in doubt")
    encoder = scorer.panel.encoder
    if encoder is not None:
        lines.append("- Columns: " + "; ".join(encoder.describe().splitlines()))
    told = [
        f"{name} ({type(member).__name__}, rank-margin weight {weight:.2f})"
        for name, member, weight in zip(
            scorer.panel.names, scorer.panel.members, scorer.weights, strict=True
        )
    ]
    lines.append("- Members: " + ", ".join(told))
    return "## Model\n\n" + "\n".join(lines)


def _table(matrix: Confusion, cells: Any = ()) -> str:
    """A matrix in Markdown, with intervals where there are some."""
    heads = ["", *(f"called {label}" for label in matrix.classes), "rejected"]
    intervals = {
        (cell.true, cell.answer): f" ({cell.low:.1%} to {cell.high:.1%})" for cell in cells
    }
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for true in matrix.classes:
        told = [f"{matrix[true, a]}{intervals.get((true, a), '')}" for a in (*matrix.classes, None)]
        rows.append("| " + " | ".join([f"true {true}", *told]) + " |")
    return "\n".join(rows)
