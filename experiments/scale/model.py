"""What a pass costs, as a model: a start, a price for every block, and work that is shared.

    seconds = start + per_block · blocks + per_row · rows of the busiest worker

The first two are fitted to files with a single row, the last to a job. The busiest worker has its
share of the blocks, rounded up. Blocks are handed out by one scheduler, so their price is not
shared by the workers: that is what ends the growth. The model knows nothing of networks, of disks
that are read by many, nor of machines that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from experiments.scale.measuring import Measured


@dataclass(frozen=True)
class Cost:
    """Seconds of one pass of a job.

    Attributes
    ----------
    start, per_block, per_row : float
        The three prices, in seconds; `per_row` for one worker.
    """

    start: float
    per_block: float
    per_row: float

    def seconds(self, rows: float, blocks: float, workers: float) -> float:
        """What a pass would take."""
        busiest = busiest_rows(rows, blocks, workers)
        return self.start + self.per_block * blocks + self.per_row * busiest

    def least(self, rows: float, workers: float, most_rows: float) -> tuple[float, float]:
        """The same with as many blocks as workers, or as few as memory allows: seconds, blocks."""
        blocks = max(workers, rows / most_rows)
        return self.seconds(rows, blocks, workers), blocks


def busiest_rows(rows: float, blocks: float, workers: float) -> float:
    """Rows of the worker with most blocks; a part of a block counts as one."""
    return float(rows * np.ceil(blocks / workers) / blocks)


def fitted(of_nothing: Sequence[Measured], of_job: Sequence[Measured]) -> Cost:
    """The prices, by least squares on relative errors, none below 0."""
    A = np.array([[1.0, one.blocks] for one in of_nothing])
    seconds = np.array([one.each for one in of_nothing])
    start, per_block = nnls(A / seconds[:, None], np.ones(len(seconds)))[0]
    rest = [max(one.each - start - per_block * one.blocks, 0.0) for one in of_job]
    shares = np.array([busiest_rows(one.rows, one.blocks, one.workers) for one in of_job])
    times = np.array([one.each for one in of_job])
    per_row = float((shares * rest / times**2).sum() / (shares**2 / times**2).sum())
    return Cost(float(start), float(per_block), per_row)


def worst_error(cost: Cost, of_job: Sequence[Measured]) -> float:
    """The largest factor between what the model says and what was measured."""
    factors = [cost.seconds(one.rows, one.blocks, one.workers) / one.each for one in of_job]
    return float(np.exp(np.abs(np.log(factors)).max()))
