"""Classification of many samples, with a limit on the time as in the paper: five minutes."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from signal import SIGXCPU
from time import process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from experiments._parts import Floats, Ints
from experiments.mam.classifying import MAM, SVM, Effort
from experiments.mam.data import Parts, parts
from margrave.mam import MAMClassifier

RANDOM, LINEAR = "MAM, random features", "linear MAM"
LINEAR_SVM, SGD, NYSTROEM = "linear SVM", "SGD", "Nyström and linear SVM"
FORMS = (MAM, RANDOM, LINEAR)
OTHERS = (SVM, LINEAR_SVM, SGD, NYSTROEM)
METHODS = (*FORMS, *OTHERS)

LIMIT = 300
"""Seconds of CPU time to learn and to predict."""

N_COMPONENTS = {RANDOM: 1000, NYSTROEM: 500}
N_SEARCH = 2_000
"""Training samples on which the slow methods search their settings."""

ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
N_FEATURES = 20


@dataclass(frozen=True)
class Large:
    """A method on a large set.

    Attributes
    ----------
    title, method : str
        Which.
    error : float
        Fraction of the test set that is wrong; NaN if the time was over the limit.
    fit, predict : float
        Seconds of CPU time to learn, the search for settings included, and to predict.
    """

    title: str
    method: str
    error: float
    fit: float
    predict: float

    @property
    def finished(self) -> bool:
        """Whether it took no longer than the limit."""
        return not np.isnan(self.error)


@dataclass(frozen=True)
class Sizes:
    """Numbers of samples, 50,000 in all, and the limit in seconds of CPU time."""

    train: int = 40_000
    test: int = 10_000
    limit: int = LIMIT


# The sets


def twonorm(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Breiman's: two normal distributions with centres at ±2/√20 in 20 features."""
    y = rng.integers(2, size=n)
    centres = np.where(y == 1, 2.0, -2.0)[:, None] / np.sqrt(N_FEATURES)
    return rng.normal(size=(n, N_FEATURES)) + centres, y


def ringnorm(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Breiman's: a wide normal distribution around 0, and a narrow one near it."""
    y = rng.integers(2, size=n)
    noise = rng.normal(size=(n, N_FEATURES))
    return np.where(y[:, None] == 1, noise + 2 / np.sqrt(N_FEATURES), 2 * noise), y


def waveform(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Breiman's: noisy mixtures of two of three waves in 21 features; one pair is a class."""
    places = np.arange(21)
    waves = np.maximum(6 - np.abs(places - np.array([[6], [14], [10]])), 0)
    pair = rng.integers(3, size=n)
    part = rng.random((n, 1))
    mixed = part * waves[pair] + (1 - part) * waves[(pair + 1) % 3]
    return mixed + rng.normal(size=mixed.shape), (pair == 0).astype(np.int64)


def clusters(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Eight clusters of each class in ten of 20 features, by scikit-learn; 2 % of labels random."""
    X, y = make_classification(
        n,
        N_FEATURES,
        n_informative=10,
        n_redundant=0,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=int(rng.integers(2**31)),
    )
    return X, y.astype(np.int64)


SETS: Mapping[str, Callable[[int, np.random.Generator], tuple[Floats, Ints]]] = {
    "twonorm": twonorm,
    "ringnorm": ringnorm,
    "waveform": waveform,
    "clusters": clusters,
}


def draw(title: str, sizes: Sizes, seed: int) -> Parts:
    """A set of these sizes, its features scaled on the training set."""
    X, y = SETS[title](sizes.train + sizes.test, np.random.default_rng(seed))
    return parts(X, y, sizes.train, seed)


# The methods


class SearchOnSome:
    """A classifier whose settings are found on some of the samples, and which all samples train."""

    def __init__(self, model: Any, grid: Mapping[str, Sequence[Any]], n_folds: int) -> None:
        self.model, self.grid, self.n_folds = model, grid, n_folds

    def fit(self, X: Floats, y: Ints) -> SearchOnSome:
        """Search on the first samples, which are in random order, and train."""
        search = GridSearchCV(self.model, self.grid, cv=self.n_folds, refit=False)
        search.fit(X[:N_SEARCH], y[:N_SEARCH])
        self.best_ = clone(self.model).set_params(**search.best_params_).fit(X, y)
        return self

    def predict(self, X: Floats) -> Ints:
        """Predict labels."""
        return np.asarray(self.best_.predict(X))


def build(method: str, n_features: int, seed: int, effort: Effort) -> Any:
    """Make a method, new."""
    folds, costs = effort.n_folds, list(effort.costs)
    gammas = [part / n_features for part in effort.gammas]
    if method == SVM:
        return SearchOnSome(SVC(cache_size=500), {"C": costs, "gamma": gammas}, folds)
    if method == NYSTROEM:
        features = Nystroem(n_components=N_COMPONENTS[NYSTROEM], random_state=seed)
        both = Pipeline([("features", features), ("svm", LinearSVC(dual=False))])
        return SearchOnSome(both, {"svm__C": costs, "features__gamma": gammas}, folds)
    if method == LINEAR_SVM:
        return GridSearchCV(LinearSVC(dual=False), {"C": costs}, cv=folds)
    if method == SGD:
        return GridSearchCV(SGDClassifier(random_state=seed), {"alpha": list(ALPHAS)}, cv=folds)
    forms: dict[str, dict[str, Any]] = {
        MAM: {},
        RANDOM: {"n_components": N_COMPONENTS[RANDOM], "random_state": seed},
        LINEAR: {"kernel": "linear", "random_state": seed},
    }
    return MAMClassifier(n_jobs=1, **forms[method])


# The runs


def measure(title: str, method: str, sizes: Sizes, seed: int, effort: Effort) -> Large:
    """Train and predict on one thread, and measure the CPU time."""
    drawn = draw(title, sizes, seed)
    model = build(method, drawn.X_train.shape[1], seed, effort)
    with threadpool_limits(1):
        start = process_time()
        _limit_time(sizes.limit)
        model.fit(drawn.X_train, drawn.y_train)
        learned = process_time()
        wrong = model.predict(drawn.X_test) != drawn.y_test
        done = process_time()
    return Large(title, method, float(np.mean(wrong)), learned - start, done - learned)


def _limit_time(seconds: int) -> None:
    """Let the system end this process after so many more seconds of CPU time."""
    last = int(np.ceil(process_time())) + seconds
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + 1))


def run(title: str, method: str, sizes: Sizes, seed: int, effort: Effort) -> Large:
    """Measure in a process of its own, which ends at the limit."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (title, method, sizes, seed, effort)
    process = context.Process(target=_send, args=(sender, *arguments))
    process.start()
    sender.close()
    try:
        found: Large = receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode != -SIGXCPU:
            raise RuntimeError(f"{method} failed on {title}: exit {process.exitcode}.") from None
        return Large(title, method, np.nan, np.nan, np.nan)
    process.join()
    return found


def _send(sender: Connection, *arguments: Any) -> None:
    sender.send(measure(*arguments))


def all_runs(
    titles: Sequence[str], sizes: Sizes, seed: int, effort: Effort, n_jobs: int
) -> Iterator[Large]:
    """Every method on every set, as they are done; the long ones are begun first.

    Threads wait for the processes: a process of a joblib worker cannot have processes of its own.
    """
    jobs = [
        delayed(run)(title, method, sizes, seed, effort)
        for method in (SVM, MAM, NYSTROEM, SGD, RANDOM, LINEAR_SVM, LINEAR)
        for title in titles
    ]
    yield from Parallel(n_jobs=n_jobs, backend="threading", return_as="generator_unordered")(jobs)
