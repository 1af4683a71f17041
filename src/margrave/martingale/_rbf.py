"""Logistic regression on features of the RBF kernel: the other learner of Kulkarni et al. (2016).

The paper (section 5.2, table 1) boosts an RBF classifier besides logistic regression, without
defining it. Here it is the same regression on Nyström's features of the kernel, so that it is tuned
in the same way, by itself or at the nodes of a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.kernel_approximation import Nystroem

from margrave._typing import Codes, Floats
from margrave._validation import check_parameters, is_count, is_number
from margrave.confusion import Objective
from margrave.martingale._logistic import TunableLogistic
from margrave.martingale._request import SearchResult


class TunableRBFLogistic(TunableLogistic):
    """Logistic regression on features of the RBF kernel, tuned to a preference.

    Nyström's method maps a sample to its kernel values with some training samples, the landmarks,
    so that products of the features approximate the kernel exp(−γ‖x − x′‖²) [1]_. A
    :class:`TunableLogistic` on these features, standardised, is a classifier with a curved boundary
    that has the same tuning. The kernel depends on the units of X, so scale the features first. At
    a node of a program the landmarks are samples that reach the node.

    Parameters
    ----------
    log_penalty : float or mapping, default=0.0
        d, one number for all features of the kernel: the penalty is exp(d). A tuned model has the
        mapping ``{"rbf": d}``.
    gamma : float, default=None
        γ; 1 / n_features if None.
    n_landmarks : int, default=100
        Number of landmarks; all training samples if there are fewer.
    class_cost : array-like or mapping, default=None
        A positive cost for each class, in the order of ``classes_`` or by label; 1 if None.
    offset : array-like or mapping, default=None
        Added to the logarithm of each class's probability; 0 if None.
    tol : float, default=1e-7
        Tolerance, as of :class:`TunableLogistic`.
    max_iter : int, default=100
        Largest number of steps of the solver.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks. Pass a number to get the same landmarks when a tuned model is cloned
        and fitted again. A program sets it at each node if it is None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    nystroem_ : Nystroem
        The map from samples to features of the kernel.
    coef_ : ndarray of shape (1, n_landmarks) or (n_classes, n_landmarks)
        Weights of the features of the kernel.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, without the offset.
    offset_ : ndarray of shape (n_classes,)
        The offset.
    group_names_ : list of str
        The one group of features, ``["rbf"]``.
    n_iter_ : int
        Number of steps of the solver.
    tuning_ : Tuning or None
        The result of the last :meth:`tune`; None before it.

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger, "Using the Nyström Method to Speed Up Kernel Machines",
       Advances in Neural Information Processing Systems 13, 2000.

    Examples
    --------
    >>> from margrave.martingale import TunableLogistic, TunableRBFLogistic
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(400, noise=0.2, factor=0.4, random_state=0)
    >>> model = TunableRBFLogistic(random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > TunableLogistic().fit(X[:200], y[:200]).score(X, y) + 0.3
    True
    >>> model.tune("fp <= 5", X[200:], y[200:]).tuning_.met
    True
    """

    groups = None
    standardize = True  # the features of the kernel

    def __init__(
        self,
        log_penalty: float | Mapping[str, float] = 0.0,
        *,
        gamma: float | None = None,
        n_landmarks: int = 100,
        class_cost: ArrayLike | Mapping[Any, float] | None = None,
        offset: ArrayLike | Mapping[Any, float] | None = None,
        tol: float = 1e-7,
        max_iter: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.log_penalty = log_penalty
        self.gamma = gamma
        self.n_landmarks = n_landmarks
        self.class_cost = class_cost
        self.offset = offset
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_codes(self, X: Floats, codes: Codes, weights: Floats, classes: NDArray[Any]) -> Self:
        kernel = Nystroem(
            gamma=self.gamma,
            n_components=min(self.n_landmarks, len(X)),
            random_state=self.random_state,
        )
        try:
            self.nystroem_ = kernel.fit(X)
        except np.linalg.LinAlgError as error:  # squared distances overflow
            raise ValueError(
                "TunableRBFLogistic cannot fit X with values that are too large; scale its columns."
            ) from error
        super()._fit_codes(self.nystroem_.transform(X), codes, weights, classes)
        self.n_features_in_ = X.shape[1]
        return self

    def _read_groups(self, n_columns: int) -> tuple[list[str], Codes]:
        # One group: the landmarks change when a node is trained again, so that penalties of single
        # ones would mean nothing.
        return ["rbf"], np.zeros(n_columns, dtype=np.intp)

    def _class_scores(self, X: Floats) -> Floats:
        return super()._class_scores(self.nystroem_.transform(X))

    def _tune_node(
        self, objective: Objective, X: Floats, **options: Any
    ) -> tuple[Self, SearchResult]:
        return super()._tune_node(objective, self.nystroem_.transform(X), **options)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_gamma = self.gamma is None or (is_number(self.gamma) and 0 < self.gamma < np.inf)
        check_parameters(
            self,
            {
                "gamma": ("None or a finite number above 0", is_gamma),
                "n_landmarks": ("a whole number of at least 1", is_count(self.n_landmarks)),
            },
        )
