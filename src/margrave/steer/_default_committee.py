"""The default committee: the members that a dialog trains on a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margrave import catalogue
from margrave.martingale import TunableLogistic
from margrave.steer._split import FOLDS

_MAX_SAMPLES_FOR_SVM = 10_000
_N_QUANTILES = 200


def default_members(n_samples: int) -> tuple[str, ...]:
    """List the members that :meth:`Dialog.from_data` trains by default.

    Parameters
    ----------
    n_samples : int
        Number of samples for training and tuning.

    Returns
    -------
    tuple of str
        Names in the catalogue.

    Examples
    --------
    >>> from margrave.steer import default_members
    >>> "svm" in default_members(5_000), "svm" in default_members(50_000)
    (True, False)
    """
    smallest_fold = n_samples * (FOLDS - 1) // FOLDS
    return tuple(name for name, _ in default_committee(smallest_fold))


def default_committee(
    n_samples: int, names: Sequence[str] | None = None, *, random_state: Any = None
) -> list[tuple[str, Any]]:
    """Make the classifiers that steering trains on a table, for standardised features.

    The members, whose errors differ, and their settings were chosen on fifteen two-class problems
    from data that the experiments do not use (and from other targets of three of their data sets).
    There a neural network or nearest neighbours did not gain enough to justify their time.

    Parameters
    ----------
    n_samples : int
        Number of training samples.
    names : sequence of str, default=None
        Names of the catalogue. By default the six that were chosen; above 10,000 samples without
        "svm", which would take most of the time. The six have settings of their own, and
        "logistic" can be tuned by `steer`; other names have the settings of `catalogue.make`.
    random_state : int, RandomState instance or None, default=None
        Seed for the members with randomness.

    Returns
    -------
    members : list of (str, classifier)
        Unfitted members with their names.

    Examples
    --------
    >>> from margrave.steer._default_committee import default_committee
    >>> [name for name, _ in default_committee(20_000)]
    ['logistic', 'logistic-quantile', 'extra-trees', 'gradient-boosting', 'qda']
    """
    settings: dict[str, dict[str, Any]] = {
        "logistic": {},
        "logistic-quantile": {"n_quantiles": min(_N_QUANTILES, n_samples)},
        "extra-trees": {"n_estimators": 150, "min_samples_leaf": 2},
        "gradient-boosting": {"max_leaf_nodes": 15, "min_samples_leaf": 10},
        "svm": {"C": 2.0},
        "qda": {},
    }
    if names is None:
        names = [name for name in settings if name != "svm" or n_samples <= _MAX_SAMPLES_FOR_SVM]
    return [
        (name, TunableLogistic())
        if name == "logistic"
        else (name, catalogue.make(name, random_state=random_state, **settings.get(name, {})))
        for name in names
    ]
