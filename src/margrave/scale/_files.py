"""A folder of Parquet files as a Dask data frame, with every file looked at first.

Columns are found by name, whatever their order in a file. What is wrong with a file is told with
its name: when it is opened, or when its rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class _Piece:
    """Row groups of one file that are read together."""

    path: str
    groups: tuple[int, ...]


def _read(piece: _Piece, columns: Sequence[str]) -> Any:
    """The rows of a piece as a data frame of pandas; Dask asks for the columns that are used."""
    from pyarrow.parquet import ParquetFile

    names = list(columns)
    try:
        with ParquetFile(piece.path) as file:
            table = file.read_row_groups(list(piece.groups), columns=names, use_threads=False)
        return table.select(names).to_pandas(use_threads=False)
    except Exception as error:
        raise ValueError(f"{piece.path} cannot be read: {error}") from error


def read_parquet(
    folder: str | Path,
    columns: Sequence[str] | None = None,
    *,
    block_bytes: int = _BLOCK_BYTES,
) -> Any:
    """Open a folder of Parquet files as one Dask data frame.

    Only the files' ends are read, which tell their columns; rows are read when they are needed.

    Parameters
    ----------
    folder : str or Path
        A folder; its files that end in ``.parquet`` or ``.parq`` are taken in the order of their
        names, those of folders within it too. Or one such file.
    columns : sequence of str, optional
        The columns that are wanted; all if None.
    block_bytes : int, default=64,000,000
        Row groups of a file are read together up to this size. A group is never divided.

    Returns
    -------
    dask.dataframe.DataFrame
        Its columns are those of the first file; other files may have them in another order.

    Raises
    ------
    ValueError
        If a file is damaged, lacks a column, or has it with another type. It is named.
    """
    import dask.dataframe as dd

    paths = _paths(Path(folder).absolute())  # workers may have been started elsewhere
    first = _opened(paths[0])
    schema = first.schema_arrow
    names = list(schema.names if columns is None else columns)
    _check_columns(paths[0], names, schema, schema)
    pieces = []
    for path in paths:
        file = first if path is paths[0] else _opened(path)
        _check_columns(path, names, file.schema_arrow, schema)
        pieces += _pieces(path, file.metadata, block_bytes)
        file.close()
    meta = schema.empty_table().select(names).to_pandas()
    return dd.from_map(_read, pieces, meta=meta, enforce_metadata=False)


def _paths(folder: Path) -> list[Path]:
    """The files, in the order of their names."""
    if folder.is_file():
        return [folder]
    if not folder.exists():
        raise FileNotFoundError(f"read_parquet needs a folder of Parquet files; no {folder}.")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in (".parquet", ".parq") and path.is_file()
    )
    if not found:
        raise ValueError(f"read_parquet needs files that end in .parquet; {folder} has none.")
    for path in found:
        if any("=" in part for part in path.relative_to(folder).parts[:-1]):
            raise ValueError(
                f"read_parquet takes columns from files, not from names of folders such as "
                f"{path.parent.name}; dask.dataframe.read_parquet reads them."
            )
    return found


def _opened(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path)
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, names: list[str], schema: Any, first: Any) -> None:
    """Refuse a file without a column, or with a column of another type."""
    missing = [name for name in names if name not in schema.names]
    if missing:
        told = ", ".join(map(repr, missing))
        raise ValueError(f"{path} needs the columns of the other files; it lacks {told}.")
    for name in names:
        own, other = schema.field(name).type, first.field(name).type
        if own != other:
            raise ValueError(
                f"{path} needs columns of the same types as the other files; {name!r} is {own}, "
                f"there {other}."
            )


def _pieces(path: Path, metadata: Any, most: int) -> list[_Piece]:
    """Row groups put together while they are small; one piece for a file without rows."""
    pieces: list[_Piece] = []
    together: list[int] = []
    size = 0
    for group in range(metadata.num_row_groups):
        own = metadata.row_group(group).total_byte_size
        if together and size + own > most:
            pieces.append(_Piece(str(path), tuple(together)))
            together, size = [], 0
        together.append(group)
        size += own
    return [*pieces, _Piece(str(path), tuple(together))]
