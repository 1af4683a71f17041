"""A folder of Parquet files: any order of columns, and what is wrong named with its file."""

import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

from margrave.scale import read_parquet

FRAME = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20) % 3, "c": list("xyzw") * 5})


@pytest.fixture
def folder(tmp_path):
    FRAME[:8].to_parquet(tmp_path / "1.parquet", index=False, row_group_size=3)
    FRAME.loc[8:13, ["c", "a", "b"]].to_parquet(tmp_path / "2.parquet", index=False)
    (tmp_path / "more").mkdir()
    FRAME[14:].to_parquet(tmp_path / "more" / "3.parq", index=False)
    return tmp_path


def test_files_are_one_table_whatever_the_order_of_their_columns(folder):
    found = read_parquet(folder).compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)


def test_some_columns(folder):
    assert read_parquet(folder, ["b"]).compute()["b"].tolist() == FRAME["b"].tolist()
    table = read_parquet(folder)
    found = table[["c", "a"]].compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(found, FRAME[["c", "a"]], check_dtype=False)


def test_only_columns_that_are_used_are_read(folder, monkeypatch):
    from pyarrow.parquet import ParquetFile

    read = []
    before = ParquetFile.read_row_groups

    def seen(self, groups, columns=None, **kwargs):
        read.append(tuple(columns))
        return before(self, groups, columns=columns, **kwargs)

    monkeypatch.setattr(ParquetFile, "read_row_groups", seen)
    assert read_parquet(folder)["a"].sum().compute(scheduler="synchronous") == FRAME["a"].sum()
    assert set(read) == {("a",)}


def test_row_groups_are_read_together_up_to_a_size(folder):
    assert read_parquet(folder).npartitions == 3
    assert read_parquet(folder, block_bytes=1).npartitions == 5


def test_a_file_without_rows(folder):
    FRAME[:0].to_parquet(folder / "0.parquet", index=False)
    assert len(read_parquet(folder).compute()) == 20


def test_one_file(folder):
    assert len(read_parquet(folder / "2.parquet").compute()) == 6


def refused(named, folder, error=ValueError, **arguments):
    with pytest.raises(error, match=named):
        read_parquet(folder, **arguments).compute(scheduler="synchronous")


def test_a_damaged_file_is_named(folder):
    path = folder / "2.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(re.escape(str(path)), folder)
    path.write_bytes(b"no table at all")
    refused(re.escape(str(path)), folder)


def test_a_file_with_damaged_rows_is_named_when_they_are_read(folder):
    path = folder / "2.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    table = read_parquet(folder)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        table.compute(scheduler="synchronous")


def test_other_columns_and_types(folder):
    path = folder / "9.parquet"
    FRAME[["a", "c"]].to_parquet(path, index=False)
    refused(f"{re.escape(str(path))}.*'b'", folder)
    FRAME.astype({"b": float}).to_parquet(path, index=False)
    refused(f"{re.escape(str(path))}.*'b'.*double.*int64", folder)


def test_workers_may_be_elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    table = read_parquet(folder.name)
    monkeypatch.chdir("/")
    assert len(table.compute()) == 20


def test_folders_that_look_like_files_and_folders_that_hold_values(folder):
    (folder / "old.parquet").mkdir()
    FRAME[:3].to_parquet(folder / "LAST.PARQUET", index=False)
    assert len(read_parquet(folder).compute()) == 23
    (folder / "b=1").mkdir()
    FRAME[:3].to_parquet(folder / "b=1" / "1.parquet", index=False)
    refused("read_parquet.*b=1", folder)


def test_no_files(tmp_path):
    refused(re.escape(str(tmp_path)), tmp_path)
    nowhere = tmp_path / "nowhere"
    refused(re.escape(str(nowhere)), nowhere, FileNotFoundError)
