"""Sums for the tests of PyTorch and Triton.

Triton's programs run in its interpreter, which must be requested before Triton is imported: this
file, run as a script, computes all that is fused in a process of its own.
"""

import sys
import warnings
from dataclasses import dataclass

import numpy as np
from tests.needs import need_package

from margrave.mam import Kernel, kernel_sum
from margrave.mam._sums import LevelWeights, leave_one_out_sums
from margrave.mam.gpu import _backend as module

torch = need_package("torch")

EXACT, ROUNDED = 1e-11, 1e-5
RBF = "rbf"


@dataclass(frozen=True)
class Case:
    """One sum: rows of Z and X, features, columns of weights, and how far the rows are from 0."""

    kernel: str
    dtype: str
    m: int = 37
    n: int = 150
    d: int = 3
    n_sums: int | None = None
    gamma: float | None = None
    offset: float = 0.0
    degree: int = 3
    coef0: float = 1.0
    change: str = ""

    def data(self):
        rng = np.random.default_rng(len(repr(self)))
        Z, X = (rng.normal(size=(k, self.d)) + self.offset for k in (self.m, self.n))
        shape = self.n if self.n_sums is None else (self.n, self.n_sums)
        a = rng.normal(size=shape)
        if self.change:
            CHANGES[self.change](Z, X, a)
        return Z.astype(self.dtype), X.astype(self.dtype), a

    def sums(self, backend, absolute=False, dtype=None):
        Z, X, a = self.data()
        if absolute:
            a = np.abs(a)
            if self.kernel == "poly":  # what products are made of, all of one sign
                Z, X = np.abs(Z), np.abs(X)
        Z, X = (side.astype(dtype or side.dtype) for side in (Z, X))
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return kernel_sum(Z, X, a, self.kernel, **options, backend=backend)

    def error(self, found):
        """The largest error, as a fraction of Σ|a||K|."""
        exact = self.sums("numpy", dtype=np.float64)
        size = self.sums("numpy", absolute=True, dtype=np.float64)
        tiny = 1e-30 if self.dtype == "float32" else 1e-290
        return float((np.abs(found - exact) / (size + tiny)).max())

    @property
    def tolerance(self):
        return ROUNDED if self.dtype == "float32" else EXACT


def large_row_of_z(Z, X, a):
    Z[0] *= 1e6


def large_row_of_x(Z, X, a):
    X[0] *= 1e6
    a[0] = 0


def unlike_columns(Z, X, a):
    Z[:, 0] *= 1e6
    X[:, 0] /= 1e6


def right_angles(Z, X, a):
    """All but 0 are products of the largest with the smallest numbers."""
    Z[:, 0] *= 1e-9
    X[:, 1:] *= 1e-9
    Z[0], X[0] = 0, 0


def opposite_ends(Z, X, a):
    """Rows of length 1, those that count all at the other end."""
    end = X[0] / np.linalg.norm(X[0])
    for side in (Z, X):
        side *= 1e-3 / np.sqrt(len(end))
        side += end
    half = len(X) // 2
    X[half:] *= -1
    a[:half] = 0


CHANGES = {
    change.__name__: change
    for change in (large_row_of_z, large_row_of_x, unlike_columns, right_angles, opposite_ends)
}

CASES = [
    *(
        Case(kernel, dtype, n_sums=n_sums)
        for kernel in ("rbf", "laplacian", "poly")
        for dtype in ("float32", "float64")
        for n_sums in (None, 3)
    ),
    Case(RBF, "float32", n_sums=18),
    Case("poly", "float32", n_sums=5, degree=2),
    Case(RBF, "float32", m=1),
    Case(RBF, "float32", m=1, n=1),
    Case("laplacian", "float32", n=1, d=1),
    Case(RBF, "float32", d=40, m=65, n=129),  # features in several blocks
    Case(RBF, "float64", d=40, m=65, n=129),
    Case("poly", "float32", d=25, degree=1),
    *(Case(RBF, dtype, gamma=1e-4) for dtype in ("float32", "float64")),
    *(Case(RBF, dtype, gamma=20.0) for dtype in ("float32", "float64")),  # float32 would lose it
    Case(RBF, "float32", gamma=1e9, m=20),  # all but 0
    Case(RBF, "float32", gamma=1e15, m=20),  # from differences
    Case("laplacian", "float32", gamma=20.0),
    Case(RBF, "float32", offset=1e4),
    Case(RBF, "float32", offset=1e4, gamma=20.0),
    Case("laplacian", "float32", offset=1e4),
    Case("poly", "float32", gamma=1e-12, offset=1e5),
    *(
        Case("poly", "float32", d=4, gamma=1.0, coef0=coef0, change=change)
        for change in ("large_row_of_z", "large_row_of_x", "unlike_columns", "right_angles")
        for coef0 in (0.0, 1.0)
    ),
    Case("poly", "float32", n_sums=5, coef0=0.0),
    Case("laplacian", "float32", m=5, n=3, d=2000, gamma=0.02),
    Case("laplacian", "float32", m=20, n=30, d=100, gamma=0.4, n_sums=4),
    *(
        Case(RBF, "float32", m=20, n=30, d=d, n_sums=18, gamma=15.8, change="opposite_ends")
        for d in (3, 100, 1000)
    ),
]

WIDE = 1000
"""Features from which on the interpreter takes too long; a GPU does not."""

PARTS = Case(RBF, "float32", m=200, n=150, d=40)

# Widths, the third from the second by squaring; kernel, sums, and whether there is a signed one.
WIDTHS = [0.01, 0.05, 0.2, 1.0]
OTHERS = [(RBF, 2, False), (RBF, 1, True), ("laplacian", 1, True), ("poly", 1, True)]


def of_others(backend, kernel, n_sums, signed, n=140):
    rng = np.random.default_rng(n_sums)
    X, a = rng.normal(size=(n, 4)) + 10, rng.normal(size=(n, n_sums))
    if kernel == "poly":
        X -= 10
    ordered = LevelWeights(np.sort(rng.integers(0, 5, n)) * 1.0, rng.uniform(1, 2, n))
    return leave_one_out_sums(
        X, a, Kernel(kernel), WIDTHS, ordered if signed else None, backend=backend
    )


def fused_results():
    """All sums by the programs of Triton; interpreted, unless there is a GPU."""
    import margrave.mam.gpu._triton as programs

    module.load_programs = lambda device: programs
    on_gpu = torch.cuda.is_available()
    results = {
        f"case{i}": case.sums("torch") for i, case in enumerate(CASES) if on_gpu or case.d < WIDE
    }
    torch.set_default_dtype(torch.bfloat16)
    results["default"] = PARTS.sums("torch")
    torch.set_default_dtype(torch.float32)
    module._MEMORY, module._LEAST_MEMORY = 2**13, 2**12  # parts of both sides
    results["parts"] = PARTS.sums("torch")
    for i, one in enumerate(OTHERS):
        results[f"others{i}"] = of_others("torch", *one)
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Every other warning of a GPU or of Triton means that numpy or PyTorch computed instead.
    warnings.filterwarnings("error", ".*(GPU|Triton)", UserWarning)
    warnings.filterwarnings("ignore", ".*backend='torch'|CUDA initialization")
    np.savez(sys.argv[1], **fused_results())
