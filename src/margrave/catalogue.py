"""The catalogue: every method of the documents by name.

A table says for each name which class does it, with which settings, and where the documents
describe it. A class is imported when it is made, so this module imports no learning library.

Only the settings that a document asks for, or that keep a library quiet, differ from the library's
own. Nothing here scales the features; where a method needs it (`knn`, `perceptron`, `logistic`,
`svm`, `mam`, `neural-network`), put the method behind a scaler in a pipeline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from margrave._messages import did_you_mean, missing_extra, near_names

__all__ = ["Entry", "default_committee", "describe", "make", "names"]


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue.

    Parameters
    ----------
    name : str
        The name that `make` takes.
    summary : str
        What it is, in a line.
    source : str
        Where the documents have it.
    estimator : str
        Path of the class that does it.
    needs : str or None
        The extra of Margrave that installs it; None if the core does.
    defaults : mapping of str to object
        Settings that differ from those of the class.
    encodes : bool
        Whether `make` wraps the class so that it takes labels of any kind. The parameters of a
        wrapped class have `estimator__` before their names in `set_params` and in a grid search.
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
_MARTINGALE = "Interactive Martingale Boosting (Kulkarni et al.)"
_PARZEN = "A Risk Minimization Principle for a Class of Parzen Estimators (Pelckmans et al.)"
_RANK_MARGIN = "A Linear Combination of Classifiers via Rank Margin Maximization (Marrocco et al.)"

_ENTRIES = (
    _entry(
        "knn",
        "the label of most of the nearest samples",
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
        "a line moved by each mistake; it has no probabilities",
        f"{_SURVEY}, section 2",
        "sklearn.linear_model.Perceptron",
    ),
    _entry(
        "logistic",
        "logistic regression",
        f"{_MARTINGALE}, the learner of its nodes",
        "sklearn.linear_model.LogisticRegression",
        # The solver's 100 iterations run out, with a warning, on features of mixed scales.
        max_iter=1000,
    ),
    _entry(
        "logistic-quantile",
        "logistic regression on quantiles of the features; wants some hundred samples",
        "a member of the default committee",
        "margrave.members.make_logistic_quantile",
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
        "svm",
        "a support vector machine with an RBF kernel; it has no probabilities",
        f"{_SURVEY}, section 2",
        "sklearn.svm.SVC",
    ),
    _entry(
        "mam",
        "the largest average margin, a Parzen classifier; it has no probabilities",
        f"{_PARZEN}, section 2",
        "margrave.mam.MAMClassifier",
    ),
    _entry(
        "neural-network",
        "a multi-layer perceptron",
        f"{_SLIDES}, 'Data level: bagging'",
        "sklearn.neural_network.MLPClassifier",
        # As for logistic: 200 iterations run out on easy data already.
        max_iter=1000,
    ),
    _entry(
        "bagging",
        "trees on resamples of the rows",
        f"{_SLIDES}, 'Data level: bagging' to '(iii)'; {_SURVEY}, section 4",
        "sklearn.ensemble.BaggingClassifier",
    ),
    _entry(
        "smoothed-bagging",
        "bagging with Gaussian noise on the resamples",
        f"{_SURVEY}, section 4",
        "margrave.members.SmoothedBaggingClassifier",
    ),
    _entry(
        "random-subspace",
        "trees on all rows and half as many features, drawn with replacement as the slide says",
        f"{_SLIDES}, 'Feature level: random subspace'",
        "sklearn.ensemble.BaggingClassifier",
        bootstrap=False,
        bootstrap_features=True,
        max_features=0.5,
    ),
    _entry(
        "random-forest",
        "trees on resamples, each split among some features",
        f"{_SLIDES}, 'Data level (iv): variants of bagging'",
        "sklearn.ensemble.RandomForestClassifier",
    ),
    _entry(
        "extra-trees",
        "trees with thresholds drawn at random",
        "a member of the default committee",
        "sklearn.ensemble.ExtraTreesClassifier",
    ),
    _entry(
        "adaboost",
        "stumps in sequence, on rows weighted by the mistakes so far",
        f"{_SLIDES}, 'Data level (x)' and '(xi)'; {_SURVEY}, section 5.1",
        "sklearn.ensemble.AdaBoostClassifier",
    ),
    _entry(
        "modest-adaboost",
        "trees in sequence that hold back where they are right anyway; it has no probabilities",
        f"{_RANK_MARGIN}, section 4",
        "margrave.members.ModestAdaBoostClassifier",
    ),
    _entry(
        "rankboost",
        "thresholds in sequence that order positives above negatives; it has no probabilities",
        f"{_RANK_MARGIN}, sections 2 and 4",
        "margrave.members.RankBoostClassifier",
    ),
    _entry(
        "martingale",
        "logistic regressions in layers, each trained where the votes so far lead",
        f"{_MARTINGALE}, section 4.3",
        "margrave.martingale.MartingaleBoostClassifier",
    ),
    _entry(
        # Histograms, not GradientBoostingClassifier's exact splits: the same method, in time that
        # does not grow with n log n for every tree, with missing values and categories allowed.
        "gradient-boosting",
        "trees in sequence on the gradient of the loss; wants some hundred samples",
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
        "gradient boosting that grows the leaf with the largest loss; not for small data",
        f"{_SLIDES}, 'Data level (xv): variants of boosting'",
        "lightgbm.LGBMClassifier",
        needs="boosters",
        defaults=MappingProxyType({"verbose": -1}),
    ),
    Entry(
        "catboost",
        "gradient boosting made for categories",
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
    """Return what the catalogue says about a name.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    entry : Entry
        The line of the catalogue.

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
    """Make a method of the catalogue.

    Parameters
    ----------
    name : str
        One of `names()`.
    random_state : int, RandomState instance or None, default=None
        Seed for the methods that draw; ignored by those that do not, so that one call serves all.
    **params : dict
        Parameters of the class that `describe(name).estimator` names.

    Returns
    -------
    estimator : classifier
        A new one, not trained.

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
    made = cls(**{**entry.defaults, **params})
    if not entry.encodes:
        return made
    from margrave.members._encoded import EncodedLabelsClassifier

    return EncodedLabelsClassifier(made)


def _load(entry: Entry) -> type:
    module, _, cls = entry.estimator.rpartition(".")
    try:
        loaded: type = getattr(import_module(module), cls)
    except ModuleNotFoundError as error:
        # A package that is there but lacks one of its own is another problem: let it show.
        if entry.needs is None or error.name != module:
            raise
        what = f"{entry.name!r} of margrave.catalogue"
        raise ImportError(missing_extra(what, module, entry.needs)) from error
    return loaded


def _parameters(cls: Any, entry: Entry) -> list[str]:
    """Names of the parameters of a class, from its signature and from what it reports.

    Both, because XGBoost's signature hides most of them and CatBoost reports only those set.
    """
    signed = {
        param.name
        for param in signature(cls).parameters.values()
        if param.kind is not Parameter.VAR_KEYWORD
    }
    if not isinstance(cls, type):  # a function that makes a pipeline
        return sorted(signed)
    return sorted(signed.union(cls(**entry.defaults).get_params(deep=False)))


_MOST_FOR_SVM = 10_000
_QUANTILES = 200


def default_committee(
    n_samples: int, names: Sequence[str] | None = None, *, random_state: Any = None
) -> list[tuple[str, Any]]:
    """Make the classifiers that steering trains on a table, for standardised features.

    Members that err differently, and their settings, were chosen on fifteen two-class problems
    made from other data (and from other targets of three data sets of the experiment); a neural
    network or nearest neighbours gained nothing there that was worth their time.

    Parameters
    ----------
    n_samples : int
        How many samples they are trained on.
    names : sequence of str, default=None
        Names of the catalogue. By default the six that were chosen; above 10,000 samples without
        "svm", which would take most of the time. Others have the settings of `make`.
    random_state : int, RandomState instance or None, default=None
        Seed for the members that draw.

    Returns
    -------
    members : list of (str, classifier)
        Not trained.

    Examples
    --------
    >>> from margrave import catalogue
    >>> [name for name, _ in catalogue.default_committee(20_000)]
    ['logistic', 'logistic-quantile', 'extra-trees', 'gradient-boosting', 'qda']
    """
    settings: dict[str, dict[str, Any]] = {
        "logistic": {},
        "logistic-quantile": {"n_quantiles": min(_QUANTILES, n_samples)},
        "extra-trees": {"n_estimators": 150, "min_samples_leaf": 2},
        "gradient-boosting": {"max_leaf_nodes": 15, "min_samples_leaf": 10},
        "svm": {"C": 2.0},
        "qda": {},
    }
    if names is None:
        names = [name for name in settings if name != "svm" or n_samples <= _MOST_FOR_SVM]
    return [
        (name, _tunable_logistic())
        if name == "logistic"
        else (name, make(name, random_state=random_state, **settings.get(name, {})))
        for name in names
    ]


def _tunable_logistic() -> Any:
    """A logistic regression that can be tuned to a preference."""
    from margrave.martingale import TunableLogistic

    return TunableLogistic()
