"""The measures on one split of a data set: a function for each table or figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from experiments.martingale import models
from experiments.martingale.data import favoured, parts, two_class_parts
from experiments.martingale.models import Evaluation, Size
from experiments.martingale.paper import PENALTIES
from experiments.martingale.requests import Outcome, Tune, by_default, outcomes
from margrave.martingale import NodeRequest, TunableLogistic

ALONE = 0
"""Levels of a learner by itself."""
REPEATS = 3
"""Number of runs of a timing; the shortest counts."""


def table_1(title: str, seed: int, size: Size) -> dict[str, Evaluation]:
    """Base learners, tuned by folds and boosted, fitted on the training and the tuning set."""
    data = parts(title, seed)
    X, y = data.both
    kernel = models.rbf_features(X, seed)
    spaces = {"LR": (X, data.X_test), "RBF": (kernel.transform(X), kernel.transform(data.X_test))}
    found: dict[str, Evaluation] = {}
    for base, (own, test) in spaces.items():
        fits = {
            base: TunableLogistic().fit(own, y),
            f"{base}-Tune": models.tuned_by_folds(own, y, seed),
            f"Ada-{base}": models.adaboost(TunableLogistic(), size.n_rounds, seed, len(y)).fit(
                own, y
            ),
            f"MB-{base}": models.martingale(None, size.n_levels, seed).fit(own, y),
        }
        found |= {name: Evaluation.of(model, test, data.y_test) for name, model in fits.items()}
    return found


def table_2(title: str, seed: int, size: Size, freeze: float) -> dict[str, Evaluation]:
    """The comparison of the paper; tuned methods get a request for half of their errors."""
    data, c = parts(title, seed), favoured(title)
    X, y = data.X_train, data.y_train
    plain = TunableLogistic().fit(X, y)
    program = models.martingale(None, size.n_levels, seed).fit(X, y)
    frozen = models.martingale(None, size.n_levels, seed, freeze).fit(X, y)
    adaptive = models.adaptive(None, size.n_levels, seed).fit(X, y)
    fits = {
        "LR": plain,
        "LR-Tune": models.tuned_to_half(plain, data, c),
        "MB": program,
        "AMB": adaptive,
        "MB-Tune": models.tuned_to_half(program, data, c, granularity="root"),
        "MB-Tune-Freeze": models.tuned_to_half(frozen, data, c, granularity="root"),
    }
    if len(plain.classes_) == 2:  # the paper has it for two classes only
        fits["AMB-Tune"] = models.tuned_to_half(adaptive, data, c, granularity="root")
    return {name: Evaluation.of(model, data.X_test, data.y_test) for name, model in fits.items()}


def beside(title: str, seed: int, size: Size) -> dict[str, Evaluation]:
    """Not in the paper: other learners at the nodes, and other ensembles."""
    data = parts(title, seed)
    kernel = models.rbf_features(data.X_train, seed)
    spaces = {
        "": (data.X_train, data.X_test),
        "RBF": (kernel.transform(data.X_train), kernel.transform(data.X_test)),
    }
    made: dict[str, tuple[str, Any]] = {
        "tree": ("", models.tree()),
        "MB-trees": ("", models.martingale(models.tree(), size.n_levels, seed)),
        "AMB-trees": ("", models.adaptive(models.tree(), size.n_levels, seed)),
        "RBF": ("RBF", TunableLogistic()),
        "MB-RBF": ("RBF", models.martingale(None, size.n_levels, seed)),
        "AMB-RBF": ("RBF", models.adaptive(None, size.n_levels, seed)),
        "random forest": ("", models.forest(size.n_trees, seed)),
        "gradient boosting": ("", models.gradient_boosting(size.n_trees, seed)),
    }
    return {
        name: Evaluation.of(
            model.fit(spaces[space][0], data.y_train), spaces[space][1], data.y_test
        )
        for name, (space, model) in made.items()
    }


def grid_search(title: str, seed: int) -> dict[str, Evaluation]:
    """Section 5.1: one penalty from a grid, against penalties that were tuned."""
    data = parts(title, seed)
    plain = TunableLogistic().fit(data.X_train, data.y_train)
    grid = [
        TunableLogistic(np.log(max(penalty, 1e-9))).fit(data.X_train, data.y_train)
        for penalty in PENALTIES
    ]
    fits = {
        "grid search": max(grid, key=lambda model: model.score(data.X_tune, data.y_tune)),
        "half the errors": models.half_of_all(plain, data.X_tune, data.y_tune),
    }
    return {name: Evaluation.of(model, data.X_test, data.y_test) for name, model in fits.items()}


def by_levels(
    title: str, seed: int, levels: Sequence[int], freeze: float
) -> dict[tuple[str, int], Evaluation]:
    """Figures 4 and 5: programs of several depths, plain, tuned (quick), and with freezing."""
    data, c = parts(title, seed), favoured(title)
    plain = TunableLogistic().fit(data.X_train, data.y_train)
    fits: dict[tuple[str, int], Any] = {
        ("LR", ALONE): plain,
        ("LR-Tune", ALONE): models.tuned_to_half(plain, data, c),
    }
    for level in levels:
        for name, epsilon in (("MB", None), ("MB-Tune-Freeze", freeze)):
            program = models.martingale(None, level, seed, epsilon)
            program.fit(data.X_train, data.y_train)
            if epsilon is None:
                fits[name, level] = program
            which = "MB-Tune" if epsilon is None else name
            fits[which, level] = models.tuned_to_half(program, data, c)
    return {name: Evaluation.of(model, data.X_test, data.y_test) for name, model in fits.items()}


def times(title: str, seed: int, n_levels: int, freeze: float) -> dict[str, float]:
    """Table 3, in ms: training, and training with one request, in full and quick."""
    data, c = parts(title, seed), favoured(title)

    def clocked(build: Callable[[], Any]) -> float:
        took = []
        for _ in range(REPEATS):
            start = perf_counter()
            build()
            took.append(1000 * (perf_counter() - start))
        return min(took)

    def grown(epsilon: float | None) -> Any:
        program = models.martingale(None, n_levels, seed, epsilon)
        return program.fit(data.X_train, data.y_train)

    def tuned(epsilon: float | None, granularity: str) -> Any:
        return models.tuned_to_half(grown(epsilon), data, c, granularity=granularity)

    return {
        "MB": clocked(lambda: grown(None)),
        "MB-Tune": clocked(lambda: tuned(None, "root")),
        "MB-Tune-Freeze": clocked(lambda: tuned(freeze, "root")),
        "MB-Tune quick": clocked(lambda: tuned(None, "quick")),
    }


def granularity(title: str, seed: int, n_levels: int) -> dict[str, Evaluation]:
    """Table 4: a third fewer false positives, of the whole program, every node or the weak ones."""
    data = parts(title, seed)
    program = models.martingale(None, n_levels, seed).fit(data.X_train, data.y_train)
    false_alarms = ((data.y_tune == 0) & (program.predict(data.X_tune) == 1)).sum()
    wanted_fp = fewer(int(false_alarms))
    root = models.tuned(program, wanted_fp, data.X_tune, data.y_tune, granularity="root")
    found = {"I-ROOT": Evaluation.of(root, data.X_test, data.y_test)}
    for which in ("all", "select"):
        seen: list[NodeRequest] = []

        def wanted(request: NodeRequest, seen: list[NodeRequest] = seen) -> str | None:
            seen.append(request)
            return fewer(request.confusion.fp) if request.confusion.fp else None

        node_tuned = models.tuned(program, wanted, data.X_tune, data.y_tune, granularity=which)
        evaluation = Evaluation.of(node_tuned, data.X_test, data.y_test, len(seen))
        found[f"I-{which.upper()}"] = evaluation
    return found


def fewer(count: int) -> str:
    """A third fewer false positives, in words."""
    return f"fp <= {2 * count // 3}, {models.GOAL}"


def request_outcomes(title: str, seed: int, size: Size) -> dict[str, list[Outcome]]:
    """The requests to a logistic regression and to programs."""
    data = two_class_parts(title, seed)
    X, y = data.X_train, data.y_train
    forest = models.forest(size.n_trees, seed).fit(X, y)
    program = models.martingale(None, size.n_levels, seed).fit(X, y)
    adaptive = models.adaptive(None, size.n_levels, seed).fit(X, y)
    tunings: list[tuple[Any, dict[str, Tune]]] = [
        (TunableLogistic().fit(X, y), {"LR-Tune": by_default}),
        (program, {"MB-Tune quick, any gain": by_default}),
        (adaptive, {"AMB-Tune quick": by_default}),
    ]
    return {
        name: found
        for model, own in tunings
        for name, found in outcomes(data, model, forest, own).items()
    }


def freezing_level(title: str, seed: int, n_levels: int) -> float:
    """Return ε, the smallest power of ten that freezes more than nodes of one class."""
    data = parts(title, seed)

    def n_learners(epsilon: float | None) -> int:
        program = models.martingale(None, n_levels, seed, epsilon)
        return len(program.fit(data.X_train, data.y_train).learners_)

    free = n_learners(None)
    powers = [10.0**power for power in range(-3, 4)]
    return next((epsilon for epsilon in powers if n_learners(epsilon) < free), powers[-1])
