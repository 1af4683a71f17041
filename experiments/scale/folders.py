"""Folders of synthetic Parquet files: scores of seven members, and fifty columns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

MEMBERS, COLUMNS = 7, 50
Draw = Callable[[np.random.Generator, NDArray[np.int8]], list[NDArray[np.float64]]]
_ROWS_OF_SCORES, _ROWS_OF_COLUMNS = 1_000_000, 200_000


def scores_folder(folder: Path, n: int) -> Path:
    """Write labels of n samples, a third of them positive, and scores of seven members.

    The members differ in their signal and their noise, so that the best weights use several.
    """
    return _folder(folder / f"scores-{n}", n, _ROWS_OF_SCORES, _scores)


def columns_folder(folder: Path, n: int) -> Path:
    """Write labels of two classes and fifty columns."""
    return _folder(folder / f"columns-{n}", n, _ROWS_OF_COLUMNS, _columns)


def single_rows_folder(folder: Path, n: int) -> Path:
    """Write files of a single row, which measure the overhead of a block."""
    return _folder(folder / f"single-{n}", n, 1, _columns)


def names(n_columns: int) -> list[str]:
    """Return the names of the columns."""
    return [f"c{place}" for place in range(n_columns)]


def _folder(folder: Path, n: int, most: int, draw: Draw) -> Path:
    """Write a folder with a file for each part of the rows, unless it exists."""
    sizes = [min(most, n - start) for start in range(0, n, most)]
    paths = [folder / f"{place:05d}.parquet" for place in range(len(sizes))]
    if not (folder.exists() and all(path.exists() for path in paths)):
        folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            list(pool.map(partial(_write, draw), paths, sizes, range(len(sizes))))
    return folder


def _write(draw: Draw, path: Path, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 1 / 3).astype(np.int8)
    values = draw(rng, y)
    table = pa.table([pa.array(y), *map(pa.array, values)], ["y", *names(len(values))])
    beside = path.with_suffix(".part")
    pq.write_table(table, beside, use_dictionary=["y"], compression="snappy")
    beside.rename(path)


def _scores(rng: np.random.Generator, y: NDArray[np.int8]) -> list[NDArray[np.float64]]:
    sign = np.where(y, 1.0, -1.0)
    shared = rng.uniform(-0.2, 0.2, len(y))
    scores = []
    for place in range(MEMBERS):
        noise = rng.uniform(-1, 1, len(y)) * (0.25 + 0.05 * place)
        scores.append(np.clip((0.2 + 0.04 * place) * sign + noise + shared, -1, 1))
    return scores


def _columns(rng: np.random.Generator, y: NDArray[np.int8]) -> list[NDArray[np.float64]]:
    shift = np.where(y, 0.15, -0.15)
    return [rng.standard_normal(len(y)) + shift * (place % 3) for place in range(COLUMNS)]
