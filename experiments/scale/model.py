"""What a pass costs, as a model: a start, a price for every block, and work that is shared.

    seconds = start + handing · blocks + opening · blocks of the busiest + per_row · rows of it

The first three are fitted to files with a single row, the last to a job. The busiest worker has its
share of the blocks, rounded up. Blocks are handed out by one scheduler, so that price is not shared
by the workers: that is what ends the growth. The model knows nothing of networks, of disks that are
read by many, nor of machines that differ.
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
    start : float
        Seconds whatever there is to do.
    handing, opening : float
        Seconds of the scheduler, and of a worker, for a block.
    per_row : float
        Seconds of a worker for a row.
    """

    start: float
    handing: float
    opening: float
    per_row: float

    def seconds(self, rows: float, blocks: float, workers: float) -> float:
        """What a pass would take."""
        own = float(np.ceil(blocks / workers))
        shared = self.opening * own + self.per_row * rows * own / blocks
        return self.start + self.handing * blocks + shared

    def least(self, rows: float, workers: float, most_rows: float) -> tuple[float, float]:
        """The same with as many blocks as workers, or as few as memory allows: seconds, blocks."""
        blocks = max(workers, rows / most_rows)
        return self.seconds(rows, blocks, workers), blocks


def fitted(of_nothing: Sequence[Measured], of_job: Sequence[Measured]) -> Cost:
    """The prices, by least squares on relative errors, none below 0."""
    A = np.array([[1.0, one.blocks, np.ceil(one.blocks / one.workers)] for one in of_nothing])
    seconds = np.array([one.each for one in of_nothing])
    start, handing, opening = nnls(A / seconds[:, None], np.ones(len(seconds)))[0].tolist()
    empty = Cost(start, handing, opening, 0.0)
    rest = [max(one.each - empty.seconds(0, one.blocks, one.workers), 0.0) for one in of_job]
    shares = np.array([one.rows * np.ceil(one.blocks / one.workers) / one.blocks for one in of_job])
    times = np.array([one.each for one in of_job])
    per_row = float((shares * rest / times**2).sum() / (shares**2 / times**2).sum())
    return Cost(start, handing, opening, per_row)


def worst_error(cost: Cost, of_job: Sequence[Measured]) -> float:
    """The largest factor between what the model says and what was measured."""
    factors = [cost.seconds(one.rows, one.blocks, one.workers) / one.each for one in of_job]
    return float(np.exp(np.abs(np.log(factors)).max()))
