"""Without Dask, every function of the package says what is missing and how to install it."""

import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from margrave import scale
from margrave.fuse import RankMarginClassifier
from margrave.mam import MAMClassifier, MAMRanker
from margrave.steer import SteeredClassifier

X, Y = np.arange(80.0).reshape(40, 2) / 80, np.arange(40) % 2
PAIR = [(name, LogisticRegression().fit(X, Y)) for name in ("one", "other")]


def hide(package, monkeypatch):
    """Let an import of the package fail, as if it were not installed."""
    loaded = [name for name in sys.modules if name.partition(".")[0] == package]
    for name in [package, *loaded]:
        monkeypatch.setitem(sys.modules, name, None)


def start_cluster():
    with scale.cluster(n_workers=1):
        pass


@pytest.fixture(scope="module")
def certified():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), rng.integers(2, size=600)
    return SteeredClassifier(LogisticRegression(), preference="fp <= 60%").fit(X + y[:, None], y)


@pytest.mark.parametrize("package", ["dask", "pyarrow"])
def test_a_folder_needs_dask_and_pyarrow(package, tmp_path, monkeypatch):
    hide(package, monkeypatch)
    with pytest.raises(
        ImportError, match=rf"scale\.read_parquet.*\b{package}\b.*\[dask\]"
    ) as error:
        scale.read_parquet(tmp_path)
    assert error.value.name == package


def test_a_cluster_needs_distributed(monkeypatch):
    hide("distributed", monkeypatch)
    with pytest.raises(ImportError, match=r"scale\.cluster.*\bdistributed\b.*\[dask\]"):
        start_cluster()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sample", lambda: scale.sample(X)),
        ("predict", lambda: scale.predict(PAIR[0][1], X)),
        ("confusion", lambda: scale.confusion(Y, Y)),
        ("frontier", lambda: scale.frontier({"one": X[:, 0]}, Y)),
        ("rank_margin_weights", lambda: scale.rank_margin_weights(X, Y)),
        ("fit", lambda: scale.fit(RankMarginClassifier(PAIR, prefit=True), X, Y)),
        ("fit", lambda: scale.fit(MAMClassifier("linear"), X, Y)),
        ("fit", lambda: scale.fit(MAMRanker("linear"), X, Y)),
        ("fit", lambda: scale.fit(SteeredClassifier(LogisticRegression()), X, Y)),
    ],
)
def test_data_in_memory_without_dask(name, call, monkeypatch):
    """An error that only asks for a Dask collection would not help."""
    hide("dask", monkeypatch)
    with pytest.raises(ImportError, match=rf"scale\.{name}\b.*\bdask\b.*\[dask\]"):
        call()


@pytest.mark.parametrize("function", [scale.check, scale.recertify])
def test_checks_without_dask(function, certified, monkeypatch):
    hide("dask", monkeypatch)
    with pytest.raises(ImportError, match=rf"scale\.{function.__name__}\b.*\bdask\b.*\[dask\]"):
        function(certified, X, Y)
