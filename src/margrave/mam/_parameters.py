"""Parameters and samples of all estimators: what is allowed, and the candidates for the width γ."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from margrave._typing import Floats
from margrave._validation import Rules, is_count, is_number, validate_numbers
from margrave.mam._kernels import NAMES, PRECOMPUTED, check_symmetric

N_WIDTHS = 15
"""The number of default candidates for γ."""

ROWS_FOR_WIDTHS = 5_000
"""The largest number of samples on which the width of random features is selected."""

LARGEST_SEED = 2**31 - 1

_RANGE = (1e-290, 1e290)
_CONSTANT = 1e-28  # a smaller variance, in units of the largest number, is rounding
_RATIO = 4.0  # the kernel values of a width, squared twice, are those of the next


def sum_rules(kernel: Any, degree: Any, coef0: Any, n_jobs: Any, backend: Any) -> Rules:
    """List the allowed values of the parameters of `kernel_sum`, but for gamma."""
    is_n_jobs = n_jobs is None or is_count(n_jobs) or (is_number(n_jobs) and n_jobs == -1)
    is_backend = isinstance(backend, str) and backend in ("auto", "numpy", "torch")
    return {
        "kernel": ("'rbf', 'linear', 'poly', 'laplacian' or callable", is_kernel(kernel)),
        "degree": ("an integer of at least 1", is_count(degree)),
        "coef0": ("a finite number", is_number(coef0) and bool(np.isfinite(coef0))),
        "n_jobs": ("None, -1 or a number of threads", is_n_jobs),
        "backend": ("'auto', 'numpy' or 'torch'", is_backend),
    }


def kernel_rules(estimator: Any) -> Rules:
    """List the allowed values of the kernel's parameters, of n_jobs and of backend."""
    coef0 = estimator.coef0
    kernel = estimator.kernel
    return {
        **sum_rules(kernel, estimator.degree, coef0, estimator.n_jobs, estimator.backend),
        "kernel": (
            "'rbf', 'linear', 'poly', 'laplacian', 'precomputed' or callable",
            is_kernel(kernel) or is_precomputed(kernel),
        ),
        # Below 0 the polynomial kernel is not positive definite.
        "coef0": ("a finite number of at least 0", is_number(coef0) and 0 <= coef0 < np.inf),
        "gamma": ("'loo', 'scale' or a finite number above 0", is_gamma(estimator.gamma)),
        "gammas": ("None or finite numbers above 0", are_gammas(estimator.gammas)),
    }


def feature_rules(estimator: Any) -> Rules:
    """List the allowed values of the kernel's parameters and of n_components."""
    n_components, kernel = estimator.n_components, estimator.kernel
    has_features = isinstance(kernel, str) and kernel not in ("poly", PRECOMPUTED)
    return {
        **kernel_rules(estimator),
        "n_components": (
            "None or, with kernel 'rbf' or 'laplacian', an integer of at least 1",
            n_components is None or (is_count(n_components) and has_features),
        ),
    }


def has_vector(estimator: Any) -> bool:
    """Whether the direction is a vector of features, not a sum over samples."""
    return is_linear(estimator.kernel) or getattr(estimator, "n_components", None) is not None


def validate_rows(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate samples in float64, or float32 if they are; sparse if the direction is a vector.

    The options are those of scikit-learn's `validate_data`. Kernel values are validated in float64;
    they must be square and symmetric in `fit`, and have a column for each training sample later.
    """
    name, sparse = type(estimator).__name__, has_vector(estimator)
    if issparse(X) and not sparse:
        features = " or with n_components" if hasattr(estimator, "n_components") else ""
        raise TypeError(
            f"{name} takes sparse X with kernel='linear'{features} only; "
            f"got kernel={estimator.kernel!r}."
        )
    options["accept_sparse"] = "csr" if sparse else False
    if not is_precomputed(estimator.kernel):
        return validate_numbers(estimator, X, *y, dtype=[np.float64, np.float32], **options)
    found = validate_numbers(estimator, X, *y, dtype=np.float64, **options)
    if y:
        values = found[0]
        if len(values) != values.shape[1]:
            raise ValueError(
                f"{name} with kernel='precomputed' needs a square X in fit, the kernel values of "
                f"all pairs of samples; got shape {values.shape}."
            )
        check_symmetric(values, f"{name} with kernel='precomputed' needs a symmetric X in fit")
    return found


def is_kernel(kernel: Any) -> bool:
    """Whether a value is the name of a kernel or a callable."""
    return callable(kernel) or (isinstance(kernel, str) and kernel in NAMES)


def is_precomputed(kernel: Any) -> bool:
    """Whether the samples are rows of kernel values."""
    return isinstance(kernel, str) and kernel == PRECOMPUTED


def is_linear(kernel: Any) -> bool:
    """Whether the kernel is the linear one, whose direction is a vector of the features."""
    return isinstance(kernel, str) and kernel == "linear"


def is_gamma(gamma: Any) -> bool:
    """Whether a value is "loo", "scale" or a finite number above 0."""
    if isinstance(gamma, str):
        return gamma in ("loo", "scale")
    return is_number(gamma) and 0 < gamma < np.inf


def are_gammas(gammas: Any) -> bool:
    """Whether a value is None or a list of finite numbers above 0."""
    if gammas is None:
        return True
    try:
        values = np.asarray(gammas)
    except ValueError:  # rows of different lengths
        return False
    numbers = values.ndim == 1 and len(values) > 0 and values.dtype.kind in "iuf"
    return numbers and bool(((values > 0) & (values < np.inf)).all())


def scale_gamma(X: Any, kernel: Any, weights: Floats | None = None) -> float:
    """Compute γ from the variance of the features: 1 / (n_features · variance), as scikit-learn.

    For the Laplacian kernel, whose distances are not squared, the standard deviation replaces the
    variance.
    """
    unit = float(np.abs(X.data if issparse(X) else X).max(initial=0.0)) or 1.0
    variance = _variance(X, unit, weights)
    rounding = 1e-14 if issparse(X) else _CONSTANT
    return gamma_from_variance(variance, unit, X.shape[1], kernel, rounding)


def gamma_from_variance(
    variance: float, unit: float, n_features: int, kernel: Any, rounding: float = _CONSTANT
) -> float:
    """Compute γ from the variance of all numbers, each divided by a unit."""
    if variance <= rounding:  # constant features: the width has no effect
        return 1.0
    spread = variance * unit * unit
    if kernel == "laplacian":
        spread = float(np.sqrt(variance)) * unit
    gamma = 1 / (n_features * spread) if spread > 0 else np.inf
    return float(np.clip(gamma, *_RANGE))


def _variance(X: Any, unit: float, weights: Floats | None) -> float:
    """Compute the variance of all numbers, divided by a unit so that squares do not overflow."""
    if weights is None and not issparse(X):
        return float(np.var(X / unit, dtype=np.float64))
    row_weights = np.ones(X.shape[0]) if weights is None else weights
    fractions = row_weights / row_weights.sum() / X.shape[1]
    mean = float((fractions @ (X / unit)).sum())
    if issparse(X):
        scaled = X / unit
        return float((fractions @ scaled.multiply(scaled)).sum()) - mean**2
    return float((fractions @ np.square(X / unit - mean, dtype=np.float64)).sum())


def candidate_gammas(estimator: Any, X: Any, weights: Floats | None = None) -> Floats:
    """List the values of γ to select from, increasing; one if the parameter is a number."""
    if not isinstance(estimator.gamma, str):
        return np.array([float(estimator.gamma)])
    return candidates_around(scale_gamma(X, estimator.kernel, weights), estimator)


def candidates_around(scale: float, estimator: Any) -> Floats:
    """List the values of γ to select from, increasing, for a known value of "scale"."""
    gamma, gammas = estimator.gamma, estimator.gammas
    if not isinstance(gamma, str):
        return np.array([float(gamma)])
    if gamma == "scale":
        return np.array([scale])
    if gammas is not None:
        return np.unique(np.asarray(gammas, dtype=np.float64))
    # Powers of 4, whatever the data: the bounds can count the possible candidates.
    nearest = round(float(np.log2(scale)) / 2)
    return np.asarray(_RATIO ** (nearest + np.arange(N_WIDTHS) - N_WIDTHS // 2))


def width_fraction(gamma: Any, gammas: Any, selected: float | None) -> float:
    """Compute the fraction of δ that remains for the bounds after a width was selected.

    It is 1 for a fixed width and the same for each of the user's candidates. The default
    candidates are powers of 4; the fraction of the j-th power decreases with j². "scale" counts as
    fixed, although it depends on the features.
    """
    if gamma != "loo" or selected is None:
        return 1.0
    if gammas is not None:
        return 1 / len(np.unique(np.asarray(gammas)))
    return power_fraction(round(float(np.log2(selected)) / 2))


def power_fraction(power: int) -> float:
    """Compute fractions for all integers, which sum to 1 and decrease away from 0."""
    return 1 / ((np.pi**2 / 3 - 1) * (1 + abs(power)) ** 2)
