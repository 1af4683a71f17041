"""What the parameters that all estimators of this room share may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrave._validation import Rules, is_count, is_number
from margrave.mam._sums import is_backend, is_jobs, is_kernel
from margrave.mam._widths import are_gammas, is_gamma


def kernel_rules(estimator: Any) -> Rules:
    """Kernel parameters and threads."""
    coef0, n_jobs = estimator.coef0, estimator.n_jobs
    return {
        "kernel": ("'rbf', 'linear', 'poly', 'laplacian' or callable", is_kernel(estimator.kernel)),
        "gamma": ("'loo', 'scale' or a finite number above 0", is_gamma(estimator.gamma)),
        "gammas": ("None or finite numbers above 0", are_gammas(estimator.gammas)),
        "degree": ("an integer of at least 1", is_count(estimator.degree)),
        # Below 0 the polynomial kernel is not positive definite.
        "coef0": ("a finite number of at least 0", is_number(coef0) and 0 <= coef0 < np.inf),
        "n_jobs": (
            "None, -1 or a number of threads",
            is_jobs(n_jobs),
        ),
    }


def backend_rules(estimator: Any) -> Rules:
    """What computes kernel sums."""
    return {"backend": ("'auto', 'numpy' or 'torch'", is_backend(estimator.backend))}


def components_rules(estimator: Any) -> Rules:
    """Random features."""
    components, kernel = estimator.n_components, estimator.kernel
    mapped = isinstance(kernel, str) and kernel != "poly"
    return {
        "n_components": (
            "None or, with kernel 'rbf' or 'laplacian', an integer of at least 1",
            components is None or (is_count(components) and mapped),
        )
    }


def is_linear(kernel: Any) -> bool:
    """Whether a direction can be kept as a vector of the features themselves."""
    return isinstance(kernel, str) and kernel == "linear"
