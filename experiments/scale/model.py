"""A model of the time of a pass: a start, an overhead for each block, and work of the workers.

    seconds = start + dispatch · blocks + opening · blocks of the busiest + per_row · rows of it

The first three parameters are fitted to files with a single row, the last to a job. The busiest
worker has blocks / workers blocks, rounded up. One scheduler dispatches all blocks, so that
overhead does not decrease with the number of workers and limits the speedup. The model ignores
networks, shared disks and differences between machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from experiments.scale.measuring import Measured


@dataclass(frozen=True)
class Cost:
    """Parameters of the time of one pass of a job.

    Attributes
    ----------
    start : float
        Seconds of a pass without work.
    dispatch, opening : float
        Seconds of the scheduler, and of a worker, for a block.
    per_row : float
        Seconds of a worker for a row.
    """

    start: float
    dispatch: float
    opening: float
    per_row: float

    def seconds(self, rows: float, blocks: float, workers: float) -> float:
        """Compute the time of a pass."""
        own = float(np.ceil(blocks / workers))
        parallel = self.opening * own + self.per_row * rows * own / blocks
        return self.start + self.dispatch * blocks + parallel

    def least(self, rows: float, workers: float, most_rows: float) -> tuple[float, float]:
        """Compute the time and the number of blocks: one per worker, or more if memory needs it."""
        blocks = max(workers, rows / most_rows)
        return self.seconds(rows, blocks, workers), blocks


def fit_cost(of_nothing: Sequence[Measured], of_job: Sequence[Measured]) -> Cost:
    """Fit the parameters by non-negative least squares on relative errors."""
    A = np.array([[1.0, one.blocks, np.ceil(one.blocks / one.workers)] for one in of_nothing])
    seconds = np.array([one.each for one in of_nothing])
    start, dispatch, opening = nnls(A / seconds[:, None], np.ones(len(seconds)))[0].tolist()
    empty = Cost(start, dispatch, opening, 0.0)
    rest = [max(one.each - empty.seconds(0, one.blocks, one.workers), 0.0) for one in of_job]
    rows = np.array([one.rows * np.ceil(one.blocks / one.workers) / one.blocks for one in of_job])
    times = np.array([one.each for one in of_job])
    per_row = float((rows * rest / times**2).sum() / (rows**2 / times**2).sum())
    return Cost(start, dispatch, opening, per_row)


def worst_error(cost: Cost, of_job: Sequence[Measured]) -> float:
    """Compute the largest factor between the times of the model and the measured times."""
    factors = [cost.seconds(one.rows, one.blocks, one.workers) / one.each for one in of_job]
    return float(np.exp(np.abs(np.log(factors)).max()))
