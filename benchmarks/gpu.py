"""Kernel sums on a GPU: ``python -m benchmarks.gpu``; exit 1 if it misses a target, 0 without GPU.

Seconds are the best of several runs after one that compiles; fits are timed once after it. "On the
GPU" is the time with the rows already there; all else starts from numpy arrays and ends with one.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from margrave.mam import Kernel, MAMClassifier, MAMRanker, kernel_sum
from margrave.mam.gpu import DeviceTask, SumTask, compute_sums, sums_by_torch

N_FEATURES = 16
MEMORY = 256 * 2**20


@dataclass(frozen=True)
class Row:
    """One line of the table: what, how much of which unit, and the target if there is one."""

    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        target = "" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:.3g}"
        verdict = "" if self.target is None else ("yes" if self.met else "NO")
        return f"| {self.what} | {self.value:.4g} | {self.unit} | {target} | {verdict} |"


def main(arguments: list[str] | None = None) -> int:
    """Run all, print as they come."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, each job once")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    chosen = parser.parse_args(arguments)
    if find_spec("torch") is None or not import_module("torch").cuda.is_available():
        print("No GPU here, or no PyTorch that sees it: nothing is measured.")
        return 0
    torch = import_module("torch")
    found = {name: version_of(name) for name in ("torch", "triton", "numpy", "scikit-learn")}
    versions = ", ".join(f"{name} {number}" for name, number in found.items())
    device = torch.cuda.get_device_name()
    print(f"{device}, CUDA {torch.version.cuda}, Python {platform.python_version()}, {versions}\n")
    print("| job | value | unit | target | met |\n|---|---|---|---|---|")
    n, repeats = (100_000, 1) if chosen.quick else (1_000_000, 3)
    rows = []
    for group in (
        large(torch, n, repeats),
        growth(torch, n),
        kernels(torch, n // 8),
        fits(n // 10),
        large_fit(n * 3 // 10),
    ):
        for row in group:
            rows.append(row)
            print(row, flush=True)
    if chosen.json:
        table = [asdict(row) for row in rows]
        chosen.json.write_text(json.dumps({"device": device, **found, "rows": table}, indent=1))
    return int(not all(row.met for row in rows))


def version_of(name: str) -> str:
    """The version of a package, or that it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def drawn(n: int, n_sums: int = 1) -> tuple[Any, Any, Any]:
    """Places, samples and weights."""
    rng = np.random.default_rng(0)
    sides = [rng.normal(size=(n, N_FEATURES)).astype(np.float32) for _ in range(2)]
    return sides[0], sides[1], rng.normal(size=(n, n_sums))


def best(torch: Any, job: Callable[[], Any], repeats: int) -> float:
    """The least seconds, after a run that does not count."""
    job()
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = perf_counter()
        job()
        torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return min(seconds)


def on_gpu(torch: Any, task: SumTask, repeats: int) -> float:
    """Seconds of a task whose rows are on the GPU; its result stays there."""
    with torch.inference_mode():
        data = DeviceTask(torch, task, torch.device("cuda"), MEMORY)
        return best(torch, lambda: compute_sums(data), repeats)


def error(task: SumTask, n_rows: int = 1_000) -> float:
    """How far the sums at some places are from those in float64, as a fraction of their length."""
    some = slice(None, n_rows)
    device = import_module("torch").device("cuda")
    Z, X = task.Z[some].astype(np.float64), task.X.astype(np.float64)
    exact = sums_by_torch(SumTask(task.kernel, task.gammas, task.squarings, Z, X, task.a), device)
    sums = sums_by_torch(task, device)
    if exact is None or sums is None:
        return np.inf
    return float(np.linalg.norm(sums[:, some] - exact) / np.linalg.norm(exact))


def large(torch: Any, n: int, repeats: int) -> list[Row]:
    """Sums of float32 at n places: speed, error, memory, and chunks of the matrix by PyTorch."""
    Z, X, a = drawn(n)
    task = SumTask(Kernel("rbf"), [1 / N_FEATURES], [0], Z, X, a)
    start = perf_counter()
    kernel_sum(Z[:1_000], X, a[:, 0], backend="torch")
    first = perf_counter() - start
    inside = on_gpu(torch, task, repeats)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    whole = best(torch, lambda: kernel_sum(Z, X, a[:, 0], backend="torch"), repeats)
    peak = (torch.cuda.max_memory_allocated() - before) / 1e9
    rate, chunked = n * n / inside / 1e12, chunked_rate(torch, Z, X, a)
    targets = (1.5, 15.0, 0.8) if n >= 1_000_000 else (None, None, None)  # for this size only
    job = f"RBF, float32, {n:,} x {n:,}, {N_FEATURES} features"
    return [
        Row("first call, with the start of CUDA and compilation", first, "s"),
        Row(f"{job}, on the GPU", rate, "10¹² pairs/s", targets[0]),
        Row("its relative error", error(task), "", 1e-5, at_least=False),
        Row("PyTorch in chunks", chunked, "10¹² pairs/s"),
        Row("ratio to PyTorch in chunks", rate / chunked, "", targets[1]),
        Row(f"{job}, on the GPU", inside, "s", targets[2], at_least=False),
        Row(f"{job}, with transfers", whole, "s", targets[2], at_least=False),
        Row("its extra memory on the GPU", peak, "GB", 1.0, at_least=False),
    ]


def chunked_rate(torch: Any, Z: Any, X: Any, a: Any) -> float:
    """10¹² pairs/s of the same sums by chunks of the matrix, in the best size of some."""
    gamma = 1 / N_FEATURES
    z, x, w = (torch.from_numpy(v).cuda() for v in (Z[:65_536], X, a[:, 0].astype(np.float32)))
    squares = [-gamma * side.square().sum(1) for side in (z, x)]

    def job(n_rows: int, n_columns: int) -> None:
        for i in range(0, len(z), n_rows):
            rows = slice(i, i + n_rows)
            sums = torch.zeros(len(z[rows]), dtype=torch.float32, device="cuda")
            for j in range(0, len(x), n_columns):
                columns = slice(j, j + n_columns)
                values = torch.addmm(squares[1][columns], z[rows], x[columns].T, alpha=2 * gamma)
                sums += values.add_(squares[0][rows, None]).exp_() @ w[columns]

    sizes = ((2_048, 8_192), (4_096, 32_768), (8_192, 65_536))
    seconds = [best(torch, lambda size=size: job(*size), 1) for size in sizes]  # type: ignore[misc]
    return len(z) * len(x) / min(seconds) / 1e12


def growth(torch: Any, n: int) -> list[Row]:
    """Seconds of `kernel_sum` from arrays to an array, with growing n."""
    rows = []
    for size in (n // 100, n // 30, n // 10, n // 3):
        Z, X, a = drawn(size)
        job = partial(kernel_sum, Z, X, a[:, 0], backend="torch")
        seconds = best(torch, job, 3)
        rows.append(Row(f"kernel_sum, {size:,} x {size:,}, with transfers", seconds, "s"))
    return rows


def kernels(torch: Any, n: int) -> list[Row]:
    """Speed and error of the other kernels, widths, types and numbers of sums."""
    Z, X, a = drawn(n, 16)
    few = 1 / N_FEATURES
    doubles = Z.astype(np.float64), X.astype(np.float64)
    jobs = [
        ("Laplacian, float32", SumTask(Kernel("laplacian"), [few], [0], Z, X, a[:, :1])),
        ("polynomial of degree 3, float32", SumTask(Kernel("poly"), [few], [0], Z, X, a[:, :1])),
        ("RBF, narrow, float32", SumTask(Kernel("rbf"), [4.0], [0], Z, X, a[:, :1])),
        ("RBF, 3 sums, float32", SumTask(Kernel("rbf"), [few], [0], Z, X, a[:, :3])),
        ("RBF, 16 sums, float32", SumTask(Kernel("rbf"), [few], [0], Z, X, a)),
        ("RBF, float64", SumTask(Kernel("rbf"), [few], [0], *doubles, a[:, :1])),
        ("Laplacian, float64", SumTask(Kernel("laplacian"), [few], [0], *doubles, a[:, :1])),
        ("polynomial, float64", SumTask(Kernel("poly"), [few], [0], *doubles, a[:, :1])),
    ]
    rows = []
    for name, task in jobs:
        rate = n * n / on_gpu(torch, task, 2) / 1e12
        rows.append(Row(f"{name}, {n:,} x {n:,}", rate, "10¹² pairs/s"))
        if task.Z is Z:
            rows.append(Row("its relative error", error(task), "", 1e-5, at_least=False))
    return rows


def fits(n: int) -> list[Row]:
    """Fifteen widths by leave-one-out: seconds, and the difference from numpy on a fifth."""
    X, y = make_classification(n, N_FEATURES, n_informative=8, flip_y=0.05, random_state=0)
    rows, few = [], n // 5
    for model, target in ((MAMClassifier(), y), (MAMRanker(), X[:, 0] + X[:, 1] * X[:, 2])):
        name = type(model).__name__
        model.set_params(backend="torch").fit(X[:few], target[:few]).predict(X[:few])
        for size in (few, n):
            start = perf_counter()
            model.fit(X[:size], target[:size])
            seconds = perf_counter() - start
            rows.append(Row(f"{name}.fit, 15 widths, {size:,} x {N_FEATURES}", seconds, "s"))
            start = perf_counter()
            model.predict(X[:size].astype(np.float32))
            rows.append(Row(f"{name}.predict, {size:,}", perf_counter() - start, "s"))
        model.fit(X[:few], target[:few])
        width, scores = model.gamma_, _decision(model, X[:few])
        start = perf_counter()
        model.set_params(backend="numpy").fit(X[:few], target[:few])
        rows.append(Row(f"{name}.fit by numpy, {few:,}", perf_counter() - start, "s"))
        off = np.abs(_decision(model, X[:few]) - scores).max() / np.abs(scores).max()
        rows.append(Row("widths that differ", float(width != model.gamma_), "", 0.0, False))
        rows.append(Row("largest difference of the scores", float(off), "", 1e-5, False))
    return rows


def large_fit(n: int) -> list[Row]:
    """Fifteen widths of a classifier once more, of as many samples as half a minute takes."""
    X, y = make_classification(n, N_FEATURES, n_informative=8, flip_y=0.05, random_state=0)
    start = perf_counter()
    MAMClassifier(backend="torch").fit(X, y)
    seconds = perf_counter() - start
    return [Row(f"MAMClassifier.fit, 15 widths, {n:,} x {N_FEATURES}", seconds, "s")]


def _decision(model: Any, X: Any) -> Any:
    return model.decision_function(X) if isinstance(model, MAMClassifier) else model.predict(X)


if __name__ == "__main__":
    sys.exit(main())
