"""The methods of local selection, as a table: where to look, competence, choice, weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from margrave._typing import AnyFloats, Flags
from margrave.select import _choosing, _competence
from margrave.select._competence import Near


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    name : str
        What users call it.
    title : str
        Its name in words.
    choose : callable
        From competence, and what is near, to who is chosen.
    competence : callable or None
        From what is near; None for META-DES, which learns it.
    profiles : bool
        Whether near means that the members answer alike, not that features are.
    weighs : bool
        Whether votes are weighed by competence.
    one : bool
        Whether a single member is to answer.
    """

    name: str
    title: str
    choose: Callable[[AnyFloats, Near], Flags]
    competence: Callable[[Near], AnyFloats] | None
    profiles: bool = False
    weighs: bool = False
    one: bool = False

    @property
    def needs_proba(self) -> bool:
        """Whether members must give probabilities."""
        return self.profiles or self.competence is None


_ALL = (
    Method("ola", "overall local accuracy", _choosing.best, _competence.ola, one=True),
    Method("lca", "local class accuracy", _choosing.best, _competence.lca, one=True),
    Method("rank", "rank", _choosing.best, _competence.rank, one=True),
    Method("mla", "modified local accuracy", _choosing.best, _competence.mla, one=True),
    Method("knora-e", "k nearest oracles, eliminate", _choosing.best, _competence.rank),
    Method(
        "knora-u", "k nearest oracles, union", _choosing.competent, _competence.counts, weighs=True
    ),
    Method("des-knn", "accurate, then diverse", _choosing.accurate_and_diverse, _competence.ola),
    Method("des-p", "better than chance", _choosing.better_than_chance, _competence.ola),
    Method(
        "knop",
        "k nearest output profiles",
        _choosing.competent,
        _competence.counts,
        profiles=True,
        weighs=True,
    ),
    Method("meta-des", "learned competence", _choosing.likely, None),
)
METHODS = {method.name: method for method in _ALL}
