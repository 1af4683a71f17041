"""A dialog as plain records: steps, accepted models, trade-offs, members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from margrave.confusion import Confusion, Preference
from margrave.steer import (
    Accepted,
    Alternative,
    CellRows,
    Dialog,
    Frontier,
    Reply,
    SplitSizes,
    describe_bound,
)

Record = dict[str, Any]

_BINS = 20
_STEP = (
    "strategy",
    "met",
    "shortfall",
    "binding",
    "seconds",
    "cancelled",
    "final",
    "note",
    "changes",
    "warnings",
)
_ACCEPTED = ("confidence", "preference", "issued", "route", "remarks")


def sentences(wanted: Preference, matrix: Confusion) -> list[str]:
    """Describe a preference in words; a fraction also as a count of these samples."""
    texts = []
    for bound in wanted.bounds:
        text = describe_bound(bound, matrix)
        base = int(matrix.counts[bound.cells(matrix)[1]].sum())
        if bound.is_fraction and bound.word != "precision":
            exact = bound.limit * base
            count = math.floor(exact) if bound.at_most else math.ceil(exact)
            text += f" ({count:,} of {base:,})"
        texts.append(text)
    return texts


def changes_record(changes: Sequence[Any]) -> list[Record]:
    """The cells that have changed."""
    return [
        {
            "true": change.true,
            "predicted": change.predicted,
            "before": change.before,
            "after": change.after,
        }
        for change in changes
    ]


def matrix_record(matrix: Confusion) -> Record:
    """A confusion matrix; the records around it have one version."""
    described = matrix.to_dict()
    return {name: described[name] for name in ("classes", "positive", "counts")}


def alternative_record(alternative: Alternative) -> Record:
    """What can be had instead of limits that cannot be met together."""
    described, preference = alternative.to_dict(), alternative.preference
    return {
        **{name: described[name] for name in ("text", "kept", "misses")},
        "preference": None if preference is None else str(preference),
        "matrix": matrix_record(alternative.confusion),
    }


def step_record(reply: Reply, number: int | None, parent: int | None) -> Record:
    """A step of a dialog."""
    wanted, after, two = reply.preference, reply.after, reply.after.positive is not None
    described = reply.to_dict()
    return {
        "number": number,
        "parent": parent,
        **{name: described[name] for name in _STEP},
        "preference": None if wanted is None else str(wanted),
        "sentences": [] if wanted is None else sentences(wanted, after),
        "already": wanted is not None and wanted.met(reply.before),
        "instead": None if reply.instead is None else str(reply.instead),
        "alternatives": [alternative_record(one) for one in reply.alternatives],
        "candidates": reply.n_candidates,
        "matrix": matrix_record(after),
        "before": matrix_record(reply.before),
        "fp": after.fp if two else None,
        "fn": after.fn if two else None,
    }


def accepted_record(accepted: Accepted, number: int, onnx: bool) -> Record:
    """An accepted model."""
    certificate = accepted.certificate
    described = certificate.to_dict()
    return {
        "number": number,
        "use_number": certificate.number,
        "step": accepted.step,
        **{name: described[name] for name in _ACCEPTED},
        "guarantees": [str(guarantee) for guarantee in certificate.guarantees],
        "confusion": matrix_record(certificate.confusion),
        "text": str(certificate),
        "onnx": onnx,
    }


def parts_record(sizes: SplitSizes) -> Record:
    """The number of rows in each part."""
    return {name: getattr(sizes, name) for name in ("train", "tune", "certify", "unused")}


def support_record(sizes: SplitSizes, confidence: float) -> list[Record]:
    """The smallest limit that the certification set can support for each class, in percent."""
    if not sizes.certify:
        return []
    limits = sizes.smallest_limits(confidence)
    return [
        {"label": label, "n": n, "least": round(100 * limits[label], 4)}
        for label, n in sizes.certify_by_class.items()
    ]


def frontier_record(dialog: Dialog) -> Record:
    """All known trade-offs, and the steps of the dialog among them."""
    trajectory = [
        {
            "step": number,
            "parent": parent,
            "fp": reply.after.fp,
            "fn": reply.after.fn,
            "met": reply.met,
            "preference": None if reply.preference is None else str(reply.preference),
        }
        for number, (reply, parent) in enumerate(zip(dialog.history, dialog.parents, strict=False))
    ]
    return dialog.frontier().to_dict() | {"trajectory": trajectory}


def winners_record(
    frontier: Frontier, costs: tuple[float, float], priors: tuple[float, float] | None
) -> Record:
    """The trade-offs with the lowest cost, for each part of a range of costs and priors."""
    winners = frontier.winners(cost_ratio=costs, prior=priors)
    low, high = winners[0].low, winners[-1].high
    whole = math.log(high / low) if high > low else 0.0
    prior = frontier.n_positive / (frontier.n_positive + frontier.n_negative)
    return {
        "winners": [
            {
                "name": winner.name,
                "fp": winner.fp,
                "fn": winner.fn,
                "low": winner.low,
                "high": winner.high,
                "fraction": math.log(winner.high / winner.low) / whole if whole else 1.0,
            }
            for winner in winners
        ],
        "slope": (low, high),
        "costs": costs,
        "priors": priors or (prior, prior),
        "prior": prior,
    }


def members_record(dialog: Dialog) -> Record:
    """The predictions of the members, and their disagreement."""
    rows, matrix, weights = dialog.rows(), dialog.confusion, dialog.reply.weights
    members = []
    for name, votes in rows.votes.items():
        own = Confusion.of(rows.true, votes, classes=matrix.classes, positive=matrix.positive)
        errors = int((votes != rows.true).sum())
        two = own.positive is not None
        members.append(
            {
                "name": name,
                "weight": weights.get(name, 0.0),
                "errors": errors,
                "fp": own.fp if two else None,
                "fn": own.fn if two else None,
                "accuracy": own.accuracy,
            }
        )
    votes = np.column_stack(list(rows.votes.values()))
    names, agreeing = list(rows.votes), (votes == rows.predicted[:, None]).sum(axis=1)
    wrong = rows.predicted != rows.true
    counts = np.bincount(agreeing, minlength=len(names) + 1)
    missed = np.bincount(agreeing[wrong], minlength=len(names) + 1)
    return {
        "members": members,
        "margins": _margins(rows),
        "disagreement": {
            "names": names,
            "fractions": [
                [float((one != other).mean()) for other in rows.votes.values()]
                for one in rows.votes.values()
            ],
        },
        "split": {
            "votes": list(range(len(names) + 1)),
            "n": counts.tolist(),
            "wrong": missed.tolist(),
        },
    }


def _margins(rows: CellRows) -> Record:
    """Histograms of the margins of right and wrong predictions, clipped at the 98 % quantile."""
    top = float(np.quantile(rows.margin, 0.98)) or 1.0
    edges = np.linspace(0.0, top, _BINS + 1)
    clipped, wrong = np.minimum(rows.margin, top), rows.predicted != rows.true
    right, missed = (np.histogram(clipped[at], edges)[0] for at in (~wrong, wrong))
    return {"edges": edges.tolist(), "right": right.tolist(), "wrong": missed.tolist()}
