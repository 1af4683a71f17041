"""The committee of a user who brings only a table, and its training.

Six members that err differently: a line, a line on quantiles, random trees, boosted trees, a kernel
machine and two Gaussians. They were settled on fifteen two-class problems made from other data (and
from other targets of three sets of the experiment); adding a neural network or neighbours gained
nothing there that was worth their time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import SVC
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from margrave._asking import rows_of
from margrave._near import did_you_mean, near_names
from margrave._rules import is_count
from margrave._typing import Codes, Floats
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic
from margrave.scale._nested import not_further
from margrave.scores import Scores

# Training a kernel machine on more would take most of the time.
_MOST_FOR_KERNELS = 10_000
_QUANTILES = 200
# With fewer samples threads cost more than they bring: five times as much on a busy machine.
_MANY = 20_000
PROGRAM = "program"


@dataclass(frozen=True)
class Progress:
    """How far the training of a committee is.

    Attributes
    ----------
    done, total : int
        Models trained, and to be trained; of a program by itself, levels.
    member : str
        Whose model was the last.
    """

    done: int
    total: int
    member: str


def default_members(n_samples: int, random_state: Any) -> list[tuple[str, Any]]:
    """Five or six different classifiers for standardised features, not trained."""
    members = _all_members(n_samples, random_state)
    if n_samples > _MOST_FOR_KERNELS:
        members = [(name, member) for name, member in members if name != "kernel"]
    return members


def members_by_name(
    names: Sequence[str], n_samples: int, levels: int, random_state: Any
) -> list[tuple[str, Any]]:
    """Default members, or a martingale program of so many levels, by their names."""
    owner = "Dialog.from_data"
    if not is_count(levels):
        raise ValueError(
            f"{owner} needs levels to be a whole number of at least 1; got {levels!r}."
        )
    known = dict(_all_members(n_samples, random_state))
    known[PROGRAM] = MartingaleBoostClassifier(n_levels=levels)
    for name in names:
        if name not in known:
            near = did_you_mean(near_names(name, known))
            raise ValueError(
                f"{owner} needs names of members to be among {', '.join(known)}; got {name!r} "
                f"(margrave.catalogue.make makes others by name).{near}"
            )
        if names.count(name) > 1:
            raise ValueError(f"{owner} needs each member once; {name!r} repeats.")
    return [(name, known[name]) for name in names]


def _all_members(n_samples: int, random_state: Any) -> list[tuple[str, Any]]:
    """All six, whatever time they take."""
    quantiles = QuantileTransformer(
        n_quantiles=min(_QUANTILES, n_samples), output_distribution="normal", random_state=0
    )
    return [
        ("line", TunableLogistic()),
        ("quantile-line", make_pipeline(quantiles, LogisticRegression(C=0.3, max_iter=1000))),
        (
            "random-trees",
            ExtraTreesClassifier(150, min_samples_leaf=2, random_state=random_state),
        ),
        (
            "boosted-trees",
            HistGradientBoostingClassifier(
                max_leaf_nodes=15, min_samples_leaf=10, random_state=random_state
            ),
        ),
        ("kernel", SVC(C=2.0)),
        # Shrunk, so that a class may have fewer samples than there are columns.
        ("gaussians", QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)),
    ]


def trained_apart(
    members: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    n_jobs: int | None = None,
    callback: Callable[[Progress], Any] | None = None,
) -> list[Any]:
    """Members trained on all samples, where others are kept to tune on.

    Parameters
    ----------
    members, X, y, n_jobs, callback
        As in `cross_fitted`; a program by itself tells of each level.
    """
    ((name, member), *others) = members
    if others or not isinstance(member, MartingaleBoostClassifier):
        return cross_fitted(members, X, y, [], n_jobs, callback)[0]
    program = clone(member)

    def told(level: int) -> None:
        if callback is not None:
            callback(Progress(level, program.n_levels, name))

    return [program._fit(X, y, told=told)]


def cross_fitted(
    members: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    folds: list[tuple[Codes, Codes]],
    n_jobs: int | None = None,
    callback: Callable[[Progress], Any] | None = None,
) -> tuple[list[Any], Floats]:
    """Members trained on all samples, and what others like them say about those held out.

    Parameters
    ----------
    members : list of (name, classifier)
        Clones of them are trained.
    X, y
        Samples and labels.
    folds : list of (training, held out) positions
        What is held out in one fold is in no other.
    n_jobs : int, optional
        Models trained at a time.
    callback : callable, optional
        Called with a :class:`Progress` after each model.

    Returns
    -------
    trained : list of classifiers
    raw : ndarray of shape (n, K) or (n, K, k)
        Rows that are never held out are 0.
    """
    classes = np.unique(y)
    width = () if len(classes) == 2 else (len(classes),)
    raw, trained = np.zeros((len(y), len(members), *width)), [None] * len(members)
    jobs = list(_jobs(members, folds))
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_trained)(members[j], X, y, *folds[f], classes, (j, f))
        if f is not None
        else delayed(_trained)(members[j], X, y, None, None, classes, (j, f))
        for j, f in jobs
    )
    for done, ((j, f), answer) in enumerate(results, start=1):
        if f is None:
            trained[j] = answer
        else:
            raw[folds[f][1], j] = answer
        if callback is not None:
            callback(Progress(done, len(jobs), members[j][0]))
    return trained, raw


def _jobs(members: list[Any], folds: list[Any]) -> Iterator[tuple[int, int | None]]:
    """Each member for each fold, and for all samples."""
    for j in range(len(members)):
        yield from ((j, f) for f in range(len(folds)))
        yield j, None


def _trained(
    pair: tuple[str, Any],
    X: Any,
    y: NDArray[Any],
    training: Codes | None,
    held_out: Codes | None,
    classes: NDArray[Any],
    job: tuple[int, int | None],
) -> tuple[tuple[int, int | None], Any]:
    """A member trained on all samples; or what one says about a fold that is trained without it."""
    name, member = pair[0], clone(pair[1])
    with not_further():
        with threadpool_limits(1 if len(y) < _MANY else None):
            if training is None or held_out is None:
                return job, member.fit(X, y)
            member.fit(rows_of(X, training), y[training])
        told = Scores.of([(name, member)], rows_of(X, held_out), classes=classes, ask="values")
        return job, told.raw()[:, 0]
