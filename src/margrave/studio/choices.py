"""The choices of a user before training: the target column, and how the rows are split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave import datasets
from margrave._messages import format_count
from margrave.app.messages import InputError
from margrave.app.samples import Samples, Table, samples_of
from margrave.confusion import Preference, parse_bounds
from margrave.steer import Dialog, SplitSizes
from margrave.studio import views
from margrave.studio.views import Record

if TYPE_CHECKING:
    import pandas

ABOUT = {
    "logistic": "A logistic regression with a penalty for each column; it can be tuned.",
    "logistic-quantile": "A logistic regression on ranks: robust to skewed distributions.",
    "extra-trees": "Extremely randomized trees: 150 of them.",
    "gradient-boosting": "Gradient boosting: each tree corrects the ones before.",
    "svm": "A support vector machine: similar rows get similar predictions (up to 10,000 rows).",
    "qda": "Quadratic discriminant analysis: a normal distribution for each class.",
}
"""The members that can be trained."""

_LIMITS = 60


def check_request(dialog: Dialog, wants: Sequence[str | Preference], **options: Any) -> Preference:
    """Check a request as `Dialog.check_request` does, and the number of its limits.

    The earlier limits that the request keeps count as well.
    """
    check_number_of_limits(dialog, wants)
    wanted = dialog.check_request(*wants, **options)
    if len(wanted.bounds) > _LIMITS:
        kept = f"{len(wanted.bounds)} with the earlier limits. Drop earlier limits"
        raise _too_many(kept, len(wanted.bounds))
    return wanted


def check_number_of_limits(dialog: Dialog, wants: Sequence[str | Preference]) -> None:
    """Refuse a request with so many limits that they would take too much time and memory."""
    classes, positive = dialog.confusion.classes, dialog.confusion.positive
    bounds = (
        bound
        for want in wants
        for bound in (
            parse_bounds(want, classes, positive) if isinstance(want, str) else want.bounds
        )
    )
    n = sum(1 for _ in islice(bounds, _LIMITS + 1))  # parses no further
    if n > _LIMITS:
        raise _too_many(f"at least {n}. Use several requests", n)


def _too_many(received: str, n: int) -> InputError:
    problem = f"can have at most {_LIMITS} limits; got {received}."
    return InputError("request", problem, code="too_many", n=n)


@dataclass(frozen=True)
class Source:
    """The source of a table.

    Attributes
    ----------
    name : str
        The name that the page shows.
    bundled : bool
        Whether it is a data set of the package.
    positive : label or None
        The positive class, if the source defines one.
    encoding, decimal : str or None
        The options with which the file was read, as in :func:`~margrave.app.read_samples`.
    """

    name: str
    bundled: bool
    positive: Any = None
    encoding: str | None = None
    decimal: str | None = None


def bundled_frame(name: str) -> tuple[pandas.DataFrame, Source]:
    """Load a data set of the package as a table."""
    if name not in datasets.names(available=True):
        problem = f"must be a data set of this studio; got {name!r}."
        raise InputError("data", problem, code="unknown_data", received=name)
    bunch = datasets.load(name, as_frame=True)
    if not len(bunch.target_names):
        problem = f"must be a class; that of {name} is a number."
        raise InputError("target", problem, code="wrong_column", table=name, column="target")
    return bunch.frame, Source(name, bundled=True, positive=bunch.positive)


def samples(frame: pandas.DataFrame, source: Source, choices: Mapping[str, Any]) -> Samples:
    """Build the samples from a table, as the user chose."""
    positive = choices.get("positive")
    return samples_of(
        Table(frame, source.name, positive=source.positive),
        target=choices["target"],
        positive=None if positive is None else str(positive),
        group=choices.get("group"),
        time=choices.get("time"),
        drop=choices.get("drop") or (),
    )


def split_sizes(data: Samples, choices: Mapping[str, Any]) -> SplitSizes:
    """Compute the sizes of the split that the choices lead to; refuse invalid choices."""
    return Dialog.plan_split(
        data.X,
        data.y,
        committee="martingale" if choices.get("kind") == "program" else None,
        certify=choices.get("certify", "auto"),
        guarantee=choices.get("guarantee"),
        confidence=choices.get("confidence", 0.95),
        positive=data.positive,
        groups=data.groups,
        time=data.time,
        duplicates=choices.get("duplicates", "group"),
        random_state=choices.get("seed", 0),
    )


def plan_record(data: Samples, choices: Mapping[str, Any]) -> Record:
    """Describe the split that the choices lead to, before anything is trained."""
    sizes = split_sizes(data, choices)
    remarks = []
    smallest = min(np.unique(data.y, return_counts=True)[1].tolist())
    if smallest < _FEW:
        remarks.append(
            f"The smallest class has {format_count(smallest, 'row')}: its rates can only be "
            "estimated roughly."
        )
    if choices.get("group") is not None:
        by_class = " and class" * (sizes.plan is not None and sizes.plan.by_class)
        remarks.append(
            f"Rows of a group stay together; the certification set has one row of each "
            f"group{by_class}."
        )
    if choices.get("time") is not None:
        remarks.append(
            "The latest rows are the certification set; members are evaluated on rows after those "
            "they were trained on."
        )
    remarks += sizes.notes
    return {
        "parts": views.parts_record(sizes),
        "support": views.support_record(sizes, choices.get("confidence", 0.95)),
        "planned": views.planned_record(sizes),
        "remarks": remarks,
    }


_FEW = 50
