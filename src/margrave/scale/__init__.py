"""Data larger than memory, and several machines: Dask's collections and clusters.

`cluster` sets where Dask computes, `read_parquet` opens a folder of files, and `sample` draws
rows into memory. `fit` fits :class:`margrave.fuse.RankMarginClassifier`,
:class:`margrave.mam.MAMClassifier`, :class:`margrave.mam.MAMRanker` or
:class:`margrave.steer.SteeredClassifier` by passes over blocks of rows; the result is the ordinary
estimator in memory. `predict` applies any fitted model to Dask collections. The other functions
compute from Dask collections what functions of the same names compute in memory.
"""

from margrave.scale._cluster import cluster
from margrave.scale._confusion import confusion
from margrave.scale._files import read_parquet
from margrave.scale._fit import fit
from margrave.scale._frontier import frontier
from margrave.scale._mam import fit_classifier as fit_classifier  # registers with fit and predict
from margrave.scale._predict import plain_rows as plain_rows
from margrave.scale._predict import predict
from margrave.scale._rank_margin import rank_margin_weights
from margrave.scale._roles import Draw as Draw
from margrave.scale._sample import sample
from margrave.scale._steer import TunedRows as TunedRows
from margrave.scale._steer import check, recertify
from margrave.scale._steer import check_strategies as check_strategies
from margrave.scale._steer import sample_table as sample_table
from margrave.scale._steer import tune_rows as tune_rows

# Names imported with "as" are for the other packages of Margrave.
__all__ = [
    "check",
    "cluster",
    "confusion",
    "fit",
    "frontier",
    "predict",
    "rank_margin_weights",
    "read_parquet",
    "recertify",
    "sample",
]
