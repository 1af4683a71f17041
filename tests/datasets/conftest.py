"""Where the tests look for data: the package alone, or the folder with every set."""

import os
from pathlib import Path

import pytest

# Read once, before any test changes it.
SHARED = Path(
    os.environ.get("MARGRAVE_DATA")
    or Path(__file__).resolve().parents[2].parent / "shared" / "datasets"
)


@pytest.fixture
def bare(monkeypatch):
    """No folder is named: only the package has data."""
    monkeypatch.delenv("MARGRAVE_DATA", raising=False)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty folder that MARGRAVE_DATA names."""
    monkeypatch.setenv("MARGRAVE_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def shared_file(monkeypatch):
    """Find a set's file in the folder with every set, which MARGRAVE_DATA then names."""
    monkeypatch.setenv("MARGRAVE_DATA", str(SHARED))

    def find(name):
        files = [SHARED / f"{name}{end}" for end in (".csv", ".csv.gz")]
        found = [file for file in files if file.is_file()]
        if not found:
            pytest.skip(f"no {name}.csv or {name}.csv.gz in MARGRAVE_DATA or ../shared/datasets")
        return found[0]

    return find
