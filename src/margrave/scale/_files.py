"""Read a folder of Parquet files as a Dask data frame, after a check of every file.

Columns are found by name, whatever their order in a file. Errors name the file, both when it is
opened and when its rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from margrave.scale._dask import import_dask

_BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class _RowGroups:
    """Row groups of one file that are read together, as one block."""

    path: str
    groups: tuple[int, ...]


def _read(row_groups: _RowGroups, columns: Sequence[str]) -> Any:
    """Read row groups as a pandas data frame; Dask passes the columns that it needs."""
    from pyarrow.parquet import ParquetFile

    names = list(columns)
    try:
        with ParquetFile(row_groups.path) as file:
            table = file.read_row_groups(list(row_groups.groups), columns=names, use_threads=False)
        return table.select(names).to_pandas(use_threads=False)
    except Exception as error:
        raise ValueError(f"{row_groups.path} cannot be read: {error}") from error


def read_parquet(
    folder: str | Path,
    columns: Sequence[str] | None = None,
    *,
    block_bytes: int = _BLOCK_BYTES,
) -> Any:
    """Open a folder of Parquet files as one Dask data frame.

    It reads only the footers of the files, which list their columns. Rows are read when they are
    needed.

    Parameters
    ----------
    folder : str or Path
        A folder, or one Parquet file. In a folder, all files that end in ``.parquet`` or ``.parq``
        are read in the order of their names, including those in subfolders.
    columns : sequence of str, optional
        The columns to read; all if None.
    block_bytes : int, default=64,000,000
        Row groups of a file are read together up to this size. A group is never split.

    Returns
    -------
    dask.dataframe.DataFrame
        The data frame, with the columns of the first file; other files may have them in another
        order.

    Raises
    ------
    ValueError
        If a file is damaged, lacks a column, or has a column of another type. The error names the
        file.
    ModuleNotFoundError
        If Dask or pyarrow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from margrave import scale
    >>> with TemporaryDirectory() as folder:
    ...     for part in range(3):
    ...         table = pd.DataFrame({"amount": [1.0, 2.0], "label": ["fine", "fraud"]})
    ...         table.to_parquet(Path(folder, f"{part}.parquet"))
    ...     payments = scale.read_parquet(folder)
    ...     payments.npartitions, len(payments)
    (3, 6)
    """
    dd = import_dask("scale.read_parquet", "dask.dataframe")
    import_dask("scale.read_parquet", "pyarrow.parquet")
    paths = _find_files(Path(folder).absolute())  # workers may run in another folder
    first = _open(paths[0])
    schema = first.schema_arrow
    names = list(schema.names if columns is None else columns)
    _check_columns(paths[0], names, schema, schema)
    blocks = []
    for path in paths:
        file = first if path is paths[0] else _open(path)
        _check_columns(path, names, file.schema_arrow, schema)
        blocks += _split_row_groups(path, file.metadata, block_bytes)
        file.close()
    meta = schema.empty_table().select(names).to_pandas()
    return dd.from_map(_read, blocks, meta=meta, enforce_metadata=False)


def _find_files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder, in the order of their names."""
    if folder.is_file():
        return [folder]
    if not folder.exists():
        raise FileNotFoundError(
            f"scale.read_parquet needs a folder of Parquet files; got {folder}, which does not "
            "exist."
        )
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in (".parquet", ".parq") and path.is_file()
    )
    if not files:
        raise ValueError(
            f"scale.read_parquet needs files that end in .parquet or .parq; got {folder}, which "
            "has none."
        )
    for path in files:
        if any("=" in part for part in path.relative_to(folder).parts[:-1]):
            raise ValueError(
                "scale.read_parquet needs all columns in the files; got one in the name of the "
                f"folder {path.parent.name}. Use dask.dataframe.read_parquet for such folders."
            )
    return files


def _open(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path)
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, names: list[str], schema: Any, first: Any) -> None:
    """Raise an error if a file lacks a column, or has a column of another type."""
    missing = [repr(name) for name in names if name not in schema.names]
    if missing:
        raise ValueError(
            f"{path} needs the columns of the other files; it lacks {', '.join(missing)}."
        )
    for name in names:
        own, other = schema.field(name).type, first.field(name).type
        if own != other:
            raise ValueError(
                f"{path} needs columns of the same types as the other files; {name!r} is {own} "
                f"here and {other} there."
            )


def _split_row_groups(path: Path, metadata: Any, most: int) -> list[_RowGroups]:
    """Split the row groups of a file into blocks of a limited size; one block if it has no rows."""
    blocks: list[_RowGroups] = []
    together: list[int] = []
    size = 0
    for group in range(metadata.num_row_groups):
        own = metadata.row_group(group).total_byte_size
        if together and size + own > most:
            blocks.append(_RowGroups(str(path), tuple(together)))
            together, size = [], 0
        together.append(group)
        size += own
    return [*blocks, _RowGroups(str(path), tuple(together))]
