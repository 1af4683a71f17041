"""A dialog as plain records: steps, accepted models, trade-offs, members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave.app._records import matrix_record
from margrave.confusion import Confusion, Preference
from margrave.steer._certificate import describe_bound
from margrave.steer._dialog import Dialog
from margrave.steer._frontier import Frontier, dialog_frontier
from margrave.steer._ledger import Accepted
from margrave.steer._order_statistic import supported_rate
from margrave.steer._reply import Reply
from margrave.steer._scorer import find_regions
from margrave.steer._thresholds import lead_of_largest
from margrave.steer._tuning_data import Candidate, TuningData

Record = dict[str, Any]

_BINS = 20


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


def step_record(reply: Reply, number: int | None, parent: int | None) -> Record:
    """A step of a dialog."""
    wanted, after, two = reply.preference, reply.after, reply.after.positive is not None
    return {
        "number": number,
        "parent": parent,
        "preference": None if wanted is None else str(wanted),
        "sentences": [] if wanted is None else sentences(wanted, after),
        "strategy": reply.strategy,
        "met": reply.met,
        "already": wanted is not None and wanted.met(reply.before),
        "shortfall": float(reply.shortfall),
        "binding": None if reply.binding is None else str(reply.binding),
        "instead": None if reply.instead is None else str(reply.instead),
        "seconds": round(reply.seconds, 3),
        "candidates": reply.n_candidates,
        "cancelled": reply.cancelled,
        "final": reply.final,
        "matrix": matrix_record(after),
        "before": matrix_record(reply.before),
        "changes": changes_record(reply.changes),
        "fp": int(after.fp) if two else None,
        "fn": int(after.fn) if two else None,
        "note": reply.note,
    }


def accepted_record(accepted: Accepted, number: int, onnx: bool) -> Record:
    """An accepted model."""
    certificate = accepted.model.certificate_
    if certificate is None:
        raise ValueError("The accepted model has no certificate.")
    return {
        "number": number,
        "use_number": certificate.number,
        "step": accepted.step,
        "confidence": certificate.confidence,
        "preference": certificate.preference,
        "issued": certificate.issued,
        "guarantees": [str(guarantee) for guarantee in certificate.guarantees],
        "confusion": matrix_record(certificate.confusion),
        "route": certificate.route,
        "remarks": list(certificate.remarks),
        "text": str(certificate),
        "onnx": onnx,
    }


def support_record(sizes: Sequence[tuple[Any, int]], confidence: float) -> list[Record]:
    """The smallest limit that the certification set can support for each class, in percent."""
    return [
        {"label": label, "n": n, "least": round(supported_rate(n, 1 - confidence), 4)}
        for label, n in sizes
    ]


def certify_sizes(dialog: Dialog) -> list[tuple[Any, int]]:
    """The number of samples of each class in the certification set."""
    part = dialog._ledger.certification_set
    if part is None:
        return []
    counts = np.bincount(part.codes, minlength=len(dialog.classes)).tolist()
    return list(zip(dialog.classes, counts, strict=True))


def full_frontier(dialog: Dialog, slow: Sequence[Candidate]) -> Frontier:
    """The frontier of a dialog, with the candidates of the slow strategies."""
    known = dialog.frontier()  # refuses without a positive class
    candidates = [reply.candidate for reply in dialog.history]
    return dialog_frontier(dialog._data, [*candidates, *slow]) if slow else known


def frontier_record(dialog: Dialog, slow: Sequence[Candidate]) -> Record:
    """All known trade-offs, and the steps of the dialog among them."""
    frontier = full_frontier(dialog, slow)
    fp, fn, owners, _ = frontier._lowest
    names = [curve.name for curve in frontier.curves]
    parents = dialog._history.parents
    return {
        "positive": frontier.positive,
        "negative": frontier.negative,
        "n_positive": frontier.n_positive,
        "n_negative": frontier.n_negative,
        "curves": [
            {"name": curve.name, "fp": curve.fp.tolist(), "fn": curve.fn.tolist()}
            for curve in frontier.curves
        ],
        "best": [
            {"fp": a, "fn": b, "name": names[owner]}
            for a, b, owner in zip(fp.tolist(), fn.tolist(), owners.tolist(), strict=True)
        ],
        "hull": [
            {
                "name": vertex.name,
                "fp": vertex.fp,
                "fn": vertex.fn,
                "low": vertex.low,
                "high": None if math.isinf(vertex.high) else vertex.high,
            }
            for vertex in frontier.hull
        ],
        "trajectory": [
            {
                "step": number,
                "parent": parents[number],
                "fp": int(reply.after.fp),
                "fn": int(reply.after.fn),
                "met": reply.met,
                "preference": None if reply.preference is None else str(reply.preference),
            }
            for number, reply in enumerate(dialog.history)
        ],
        "slow": bool(slow),
    }


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


def votes_of(dialog: Dialog) -> Codes:
    """The prediction of each member for each sample of the tuning set; shape (n, K)."""
    tuning_data: TuningData = dialog._base()[1]  # of a program: as last tuned or grown
    columns = [
        scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        for _, scores in tuning_data.members_alone()
    ]
    return np.column_stack(columns)


def leads_of(reply: Reply) -> Floats:
    """The margin of each prediction on the tuning set, in the units of the scores."""
    lead = reply.candidate.decision.decision_values(reply.candidate.scores)
    return lead_of_largest(lead) if lead.ndim == 2 else np.abs(lead)


def certainty_of(reply: Reply) -> Floats:
    """The certainty of each prediction: the fraction of samples with a smaller margin.

    The scores of different strategies have different scales, so only the order is comparable.
    """
    size = leads_of(reply)
    order = np.sort(size)
    return np.asarray(np.searchsorted(order, size, "left") / max(len(size), 1))


def members_record(dialog: Dialog) -> Record:
    """The predictions of the members, and their disagreement."""
    tuning_data, reply = dialog._data, dialog.reply
    votes, predictions, codes = votes_of(dialog), reply.candidate.predictions, tuning_data.codes
    names = list(tuning_data.committee.names)
    scorer = reply.candidate.scorer
    weights = np.zeros(len(names))
    for name, weight in zip(scorer.committee.names, scorer.weights.tolist(), strict=True):
        if name in names:
            weights[names.index(name)] = weight
    members = []
    for j, name in enumerate(names):
        matrix = tuning_data.matrix(votes[:, j])
        errors = int((votes[:, j] != codes).sum())
        two = matrix.positive is not None
        members.append(
            {
                "name": name,
                "weight": float(weights[j]),
                "errors": errors,
                "fp": int(matrix.fp) if two else None,
                "fn": int(matrix.fn) if two else None,
                "accuracy": 1 - errors / len(codes),
            }
        )
    agreeing = (votes == predictions[:, None]).sum(axis=1)
    wrong = predictions != codes
    counts = np.bincount(agreeing, minlength=len(names) + 1)
    missed = np.bincount(agreeing[wrong], minlength=len(names) + 1)
    regions = find_regions(scorer.combine)
    return {
        "members": members,
        "regions": 0 if regions is None else regions.leaves.n,
        "regions_only": regions is not None and regions is scorer.combine,
        "margins": _margins(reply, wrong),
        "disagreement": {
            "names": names,
            "fractions": [
                [float((votes[:, i] != votes[:, j]).mean()) for j in range(len(names))]
                for i in range(len(names))
            ],
        },
        "split": {
            "votes": list(range(len(names) + 1)),
            "n": counts.tolist(),
            "wrong": missed.tolist(),
        },
    }


def _margins(reply: Reply, wrong: NDArray[np.bool_]) -> Record:
    """Histograms of the margins of right and wrong predictions, clipped at the 98 % quantile."""
    size = leads_of(reply)
    top = float(np.quantile(size, 0.98)) or 1.0
    edges = np.linspace(0.0, top, _BINS + 1)
    clipped = np.minimum(size, top)
    right, missed = (np.histogram(clipped[at], edges)[0] for at in (~wrong, wrong))
    return {"edges": edges.tolist(), "right": right.tolist(), "wrong": missed.tolist()}
