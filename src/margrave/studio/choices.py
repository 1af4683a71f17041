"""What a user chose before training: which column is the target, who sees which rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave import datasets
from margrave.app._job import Parts
from margrave.app._samples import Samples, Table, samples_of
from margrave.app._words import one_line
from margrave.confusion import Preference
from margrave.steer._start import split_table
from margrave.studio.views import Record, support_record

if TYPE_CHECKING:
    import pandas

ABOUT = {
    "logistic": "A logistic regression with a penalty for each column; it can be tuned.",
    "logistic-quantile": "A logistic regression on ranks: strange distributions do not disturb it.",
    "extra-trees": "150 very random trees.",
    "gradient-boosting": "Gradient boosting: trees that correct each other.",
    "svm": "A support vector machine: alike rows get alike answers (up to 10,000 rows).",
    "qda": "A normal distribution for each class.",
}
"""The members that can be trained."""

_LIMITS = 60
_OPTION = re.compile(r"(?<!\S)--(\w+)")
_OWNER = re.compile(r"^[A-Z]\w*(\.\w+)* needs ")


def few_enough(wants: Sequence[str]) -> None:
    """Refuse so many limits at once that to read them would take the memory of all."""
    n = sum(want.count("<") + want.count(">") for want in wants)
    if n > _LIMITS:
        raise ValueError(f"At most {_LIMITS} limits can be asked for at once; got {n}.")


def plainly(error: Exception) -> str:
    """What went wrong, in one line, without the spelling of the command line or of Python."""
    return _OPTION.sub(r"\1", _OWNER.sub("This needs ", one_line(str(error))))


@dataclass(frozen=True)
class Source:
    """Where a table is from.

    Attributes
    ----------
    name : str
        As it is shown.
    bundled : bool
        Whether it is a set of the package.
    positive : label or None
        The positive class, where it is known.
    """

    name: str
    bundled: bool
    positive: Any = None


def bundled_frame(name: str) -> tuple[pandas.DataFrame, Source]:
    """A set of the package as a table."""
    if name not in datasets.names(available=True):
        raise ValueError(f"There is no data set {name!r} here.")
    found = datasets.load(name, as_frame=True)
    if not len(found.target_names):
        raise ValueError(f"The target of {name} is a number, not a class.")
    return found.frame, Source(name, bundled=True, positive=found.positive)


def samples(frame: pandas.DataFrame, source: Source, choices: Mapping[str, Any]) -> Samples:
    """The samples that choices make of a table."""
    positive = choices.get("positive")
    same = choices["target"] == "target" or not source.bundled
    table = Table(frame, source.name, positive=source.positive if same else None)
    return samples_of(
        table,
        target=choices["target"],
        positive=None if positive is None else str(positive),
        group=choices.get("group"),
        time=choices.get("time"),
        drop=choices.get("drop") or (),
    )


def sized(given: Samples, choices: Mapping[str, Any]) -> tuple[Parts, list[tuple[Any, int]]]:
    """How many rows have which role, and how many of each class certify."""
    made = split_table(
        given.X,
        given.y,
        certify=choices.get("certify", "auto"),
        guarantee=_promise(choices),
        delta=1 - choices.get("confidence", 0.95),
        positive=given.positive,
        groups=given.groups,
        time=given.time,
        tune="martingale" if choices.get("kind") == "program" else None,
        random_state=choices.get("seed", 0),
    )
    parts, n = made.parts, len(given.y)
    tune, train = len(parts.held), len(parts.training)
    counts = np.bincount(made.codes[parts.certify], minlength=len(made.classes)).tolist()
    used = len(set(parts.build.tolist()))
    return (
        Parts(train, tune, len(parts.certify), n - used - len(parts.certify)),
        list(zip(made.classes.tolist(), counts, strict=True)),
    )


def plan_record(given: Samples, choices: Mapping[str, Any]) -> Record:
    """What choices lead to, before anything is trained."""
    parts, sizes = sized(given, choices)
    remarks = []
    smallest = min(np.unique(given.y, return_counts=True)[1].tolist())
    if smallest < _FEW:
        remarks.append(
            f"The smallest class has {smallest} rows: its shares can only be known roughly."
        )
    if choices.get("group") is not None:
        remarks.append("Rows of a group stay together, and one row of each group certifies.")
    if choices.get("time") is not None:
        remarks.append("The latest rows certify; members are judged on what came after.")
    support = support_record(sizes, choices.get("confidence", 0.95)) if parts.certify else []
    return {"parts": asdict(parts), "support": support, "remarks": remarks}


_FEW = 50


def _promise(choices: Mapping[str, Any]) -> Preference | None:
    said = choices.get("guarantee")
    return None if said is None else Preference(said)
