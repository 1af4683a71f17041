"""The catalogue: the classifiers of the source papers and of the default committee, by name.

A table lists for each name the class that implements it, its settings, and the section of the
paper that describes it. `make` imports a class when it is needed, so this module imports no
learning library.

The settings differ from the library's defaults only where a paper requires it, or to silence a
library. Nothing here scales the features; where a method needs it (`knn`, `perceptron`, `logistic`,
`rbf-logistic`, `qda`, `linear-svm`, `svm`, `mam`, `neural-network`), put the method after a scaler
in a pipeline.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from margrave._messages import did_you_mean, missing_extra, near_names

__all__ = ["Entry", "describe", "make", "names"]


@dataclass(frozen=True)
class Entry:
    """An entry of the catalogue.

    Parameters
    ----------
    name : str
        The name that `make` takes.
    summary : str
        A description in one line.
    source : str
        The paper and section that describe the method, or "not in the papers".
    estimator : str
        The import path of the class, or of the function that makes the classifier.
    needs : str or None
        The extra of Margrave that installs its library; None if the core does.
    defaults : mapping of str to object
        Settings that differ from the defaults of the estimator.
    encodes : bool
        Whether `make` wraps the class so that it accepts labels of any type. In `set_params` and in
        a grid search, the parameters of a wrapped class start with `estimator__`.

    Examples
    --------
    >>> from margrave.catalogue import describe
    >>> entry = describe("bagging")
    >>> entry.summary, entry.estimator, entry.needs
    ('trees on bootstrap samples of the rows', 'sklearn.ensemble.BaggingClassifier', None)
    """

    name: str
    summary: str
    source: str
    estimator: str
    needs: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    encodes: bool = False


def _entry(name: str, summary: str, source: str, estimator: str, /, **defaults: Any) -> Entry:
    return Entry(name, summary, source, estimator, defaults=MappingProxyType(defaults))


_SLIDES = "Multi-classifiers (slides)"
_SURVEY = "Survey of Ensemble Classifiers (Nair, 2015)"
_MARTINGALE = "Interactive Martingale Boosting (Kulkarni et al., 2016)"
_PARZEN = "A Risk Minimization Principle for a Class of Parzen Estimators (Pelckmans et al., 2008)"
_RANK_MARGIN = (
    "A Linear Combination of Classifiers via Rank Margin Maximization (Marrocco et al., 2010)"
)

_ENTRIES = (
    _entry(
        "knn",
        "the most frequent label among the nearest samples",
        f"{_SURVEY}, section 2",
        "sklearn.neighbors.KNeighborsClassifier",
    ),
    _entry(
        "stump",
        "a decision tree of one level",
        f"{_SURVEY}, section 2",
        "sklearn.tree.DecisionTreeClassifier",
        max_depth=1,
    ),
    _entry(
        "tree",
        "a decision tree",
        f"{_SURVEY}, section 2; {_SLIDES}, 'Data level: bagging'",
        "sklearn.tree.DecisionTreeClassifier",
    ),
    _entry(
        "perceptron",
        "a linear classifier, updated after each error; it has no probabilities",
        f"{_SURVEY}, section 2",
        "sklearn.linear_model.Perceptron",
    ),
    _entry(
        "logistic",
        "logistic regression",
        f"{_MARTINGALE}, the classifier at its nodes",
        "sklearn.linear_model.LogisticRegression",
        # The solver's 100 iterations run out, with a warning, on features of mixed scales.
        max_iter=1000,
    ),
    _entry(
        "logistic-quantile",
        "logistic regression on quantiles of the features; needs a few hundred samples",
        "a member of the default committee",
        "margrave.members.make_logistic_quantile",
    ),
    _entry(
        "rbf-logistic",
        "logistic regression on features of the RBF kernel, for the nodes of martingale programs",
        f"{_MARTINGALE}, section 5.2",
        "margrave.martingale.TunableRBFLogistic",
    ),
    _entry(
        "qda",
        "quadratic discriminant analysis",
        "a member of the default committee",
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        # Shrunk, so that a class may have fewer samples than there are features.
        solver="eigen",
        shrinkage=0.1,
    ),
    _entry(
        "linear-svm",
        "a linear support vector machine; it has no probabilities",
        f"{_SURVEY}, section 2",
        "sklearn.svm.LinearSVC",
    ),
    _entry(
        "svm",
        "a support vector machine with an RBF kernel; it has no probabilities",
        f"{_SURVEY}, section 2",
        "sklearn.svm.SVC",
    ),
    _entry(
        "mam",
        "a Parzen classifier with the largest average margin; it has no probabilities",
        f"{_PARZEN}, section 2",
        "margrave.mam.MAMClassifier",
    ),
    _entry(
        "neural-network",
        "a multi-layer perceptron",
        f"{_SLIDES}, 'Data level: bagging'",
        "sklearn.neural_network.MLPClassifier",
        # As for logistic: 200 iterations run out even on easy data.
        max_iter=1000,
    ),
    _entry(
        "bagging",
        "trees on bootstrap samples of the rows",
        f"{_SLIDES}, 'Data level: bagging' to '(iii)'; {_SURVEY}, section 4",
        "sklearn.ensemble.BaggingClassifier",
    ),
    _entry(
        "smoothed-bagging",
        "bagging with Gaussian noise added to the bootstrap samples",
        f"{_SURVEY}, section 4",
        "margrave.members.SmoothedBaggingClassifier",
    ),
    _entry(
        "random-subspace",
        "trees on all rows and half as many features, drawn with replacement",
        f"{_SLIDES}, 'Feature level: random subspace'",
        "sklearn.ensemble.BaggingClassifier",
        bootstrap=False,
        bootstrap_features=True,
        max_features=0.5,
    ),
    _entry(
        "random-forest",
        "trees on bootstrap samples, with a random subset of the features at each split",
        f"{_SLIDES}, 'Data level (iv): variants of bagging'",
        "sklearn.ensemble.RandomForestClassifier",
    ),
    _entry(
        "varied-trees",
        "trees on bootstrap samples, with parameters drawn at random for each tree",
        f"{_SLIDES}, 'Data level (iv): variants of bagging'",
        "margrave.members.VariedTreesClassifier",
    ),
    _entry(
        "extra-trees",
        "trees with thresholds drawn at random",
        "a member of the default committee",
        "sklearn.ensemble.ExtraTreesClassifier",
    ),
    _entry(
        "adaboost",
        "stumps in sequence, on rows weighted by the errors so far",
        f"{_SLIDES}, 'Data level (x)' and '(xi)'; {_SURVEY}, section 5.1",
        "sklearn.ensemble.AdaBoostClassifier",
    ),
    _entry(
        "real-adaboost",
        "stumps in sequence, whose leaves vote with their confidence",
        f"{_SURVEY}, section 5.1, algorithm 1",
        "margrave.members.RealAdaBoostClassifier",
    ),
    _entry(
        "modest-adaboost",
        "trees in sequence, each weaker where earlier trees are right; it has no probabilities",
        f"{_RANK_MARGIN}, section 4",
        "margrave.members.ModestAdaBoostClassifier",
    ),
    _entry(
        "rankboost",
        "thresholds in sequence that rank positives above negatives; it has no probabilities",
        f"{_RANK_MARGIN}, sections 2 and 4",
        "margrave.members.RankBoostClassifier",
    ),
    _entry(
        "martingale",
        "layers of logistic regressions, each fitted on the rows that earlier votes lead to it",
        f"{_MARTINGALE}, section 4.3",
        "margrave.martingale.MartingaleBoostClassifier",
    ),
    _entry(
        # Histograms instead of GradientBoostingClassifier's exact splits: the same method, without
        # n log n time per tree, and it accepts missing values and categories.
        "gradient-boosting",
        "trees in sequence on the gradient of the loss; needs a few hundred samples",
        f"{_SLIDES}, 'Data level (xii): variants of boosting'",
        "sklearn.ensemble.HistGradientBoostingClassifier",
    ),
    Entry(
        "xgboost",
        "extreme gradient boosting",
        f"{_SLIDES}, 'Data level (xiii): variants of boosting'",
        "xgboost.XGBClassifier",
        needs="boosters",
        encodes=True,
    ),
    Entry(
        "lightgbm",
        "gradient boosting that splits the leaf with the largest loss; not for small data",
        f"{_SLIDES}, 'Data level (xv): variants of boosting'",
        "lightgbm.LGBMClassifier",
        needs="boosters",
        defaults=MappingProxyType({"verbose": -1}),
    ),
    Entry(
        "catboost",
        "gradient boosting for categorical features",
        f"{_SLIDES}, 'Data level (xiv): variants of boosting'",
        "catboost.CatBoostClassifier",
        needs="boosters",
        defaults=MappingProxyType({"verbose": 0, "allow_writing_files": False}),
        encodes=True,
    ),
)
_BY_NAME = {entry.name: entry for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    """Return the names that `make` takes.

    Returns
    -------
    names : tuple of str
        Single classifiers first, then ensembles.

    Examples
    --------
    >>> from margrave import catalogue
    >>> catalogue.names()[:3]
    ('knn', 'stump', 'tree')
    """
    return tuple(_BY_NAME)


def describe(name: str) -> Entry:
    """Return the catalogue entry of a name.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    entry : Entry
        The entry.

    Examples
    --------
    >>> from margrave import catalogue
    >>> entry = catalogue.describe("random-subspace")
    >>> entry.estimator
    'sklearn.ensemble.BaggingClassifier'
    >>> dict(entry.defaults)
    {'bootstrap': False, 'bootstrap_features': True, 'max_features': 0.5}
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise ValueError(
        f"margrave.catalogue needs name to be one of {', '.join(_BY_NAME)}; "
        f"got {name!r}.{did_you_mean(near_names(str(name), _BY_NAME))}"
    )


def make(name: str, /, *, random_state: Any = None, **params: Any) -> Any:
    """Make a classifier of the catalogue.

    Parameters
    ----------
    name : str
        One of `names()`.
    random_state : int, RandomState instance or None, default=None
        Seed; ignored by classifiers without randomness.
    **params : dict
        Parameters of the class that `describe(name).estimator` names.

    Returns
    -------
    estimator : classifier
        A new, unfitted classifier.

    Examples
    --------
    >>> from margrave import catalogue
    >>> catalogue.make("stump", random_state=0)
    DecisionTreeClassifier(max_depth=1, random_state=0)
    >>> committee = [catalogue.make(name, random_state=0) for name in ("knn", "tree", "logistic")]
    """
    entry = describe(name)
    cls = _load(entry)
    allowed = _parameters(cls, entry)
    for param in params:
        if param not in allowed:
            raise TypeError(
                f"margrave.catalogue.make needs parameters of {name!r} to be among "
                f"{cls.__name__}'s: {', '.join(allowed)}; "
                f"got {param!r}.{did_you_mean(get_close_matches(param, allowed))}"
            )
    if random_state is not None and "random_state" in allowed:
        params["random_state"] = random_state
    classifier = cls(**{**entry.defaults, **params})
    if not entry.encodes:
        return classifier
    from margrave.members import EncodedLabelsClassifier

    return EncodedLabelsClassifier(classifier)


def _load(entry: Entry) -> Callable[..., Any]:
    module, _, name = entry.estimator.rpartition(".")
    try:
        loaded: Callable[..., Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        # An installed package that lacks a dependency of its own is another problem: re-raise.
        package = module.partition(".")[0]
        if entry.needs is None or error.name != package:
            raise
        feature = f"{entry.name!r} of margrave.catalogue"
        raise ImportError(missing_extra(feature, package, entry.needs)) from error
    return loaded


def _parameters(cls: Any, entry: Entry) -> list[str]:
    """Return the parameter names of a class, from its signature and from ``get_params``.

    Both, because XGBoost's signature hides most of them and CatBoost's ``get_params`` returns only
    those that are set.
    """
    in_signature = {
        param.name
        for param in signature(cls).parameters.values()
        if param.kind is not Parameter.VAR_KEYWORD
    }
    if not isinstance(cls, type):  # a function that makes a pipeline
        return sorted(in_signature)
    return sorted(in_signature.union(cls(**entry.defaults).get_params(deep=False)))
