"""The outcome of a request as plain data that JSON can hold."""

from __future__ import annotations

from typing import Any

from margrave.app.folder import FolderOutcome
from margrave.app.request import Outcome


def outcome_record(outcome: Outcome | FolderOutcome) -> dict[str, Any]:
    """Convert the outcome of a request."""
    model, sizes = outcome.model, outcome.sizes
    certificate = None if model is None else model.certificate_
    return {
        "exit_code": outcome.exit_code,
        "met": outcome.met,
        "certified": certificate is not None,
        "verdict": outcome.describe(),
        "refusal": outcome.refusal or None,
        "data": outcome.samples.table.name,
        "target": outcome.samples.target,
        "classes": list(outcome.start.after.classes),
        "positive": outcome.start.after.positive,
        "n": {
            "all": outcome.n_rows,
            "train": sizes.train,
            "tune": sizes.tune,
            "certify": sizes.certify,
            "unused": sizes.unused,
        },
        "columns": dict(outcome.encoder.kinds_),
        "strategy": outcome.reply.strategy,
        "seconds": round(sum(reply.seconds for reply in outcome.replies), 3),
        "start": outcome.start.after.to_dict(),
        "replies": [reply.to_dict() for reply in outcome.replies],
        "certificate": None if certificate is None else certificate.to_dict(),
    }
