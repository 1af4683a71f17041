"""Data larger than memory, and several machines: Dask's collections and clusters.

`cluster` sets where Dask computes, `read_parquet` opens a folder of files, and `sample` draws
rows into memory. `fit` fits :class:`margrave.mam.MAMClassifier` and
:class:`margrave.mam.MAMRanker`, and `predict` applies any model. These take Dask arrays and data
frames themselves: :class:`margrave.Scores`, :class:`margrave.Confusion`,
:func:`margrave.fuse.rank_margin_weights`, :class:`margrave.fuse.RankMarginClassifier`,
:class:`margrave.steer.Frontier` and :class:`margrave.steer.SteeredClassifier`.
"""

from margrave._dask.sample import sample
from margrave.scale._cluster import cluster
from margrave.scale._files import read_parquet
from margrave.scale._fit import fit
from margrave.scale._frontier import frontier_curves as frontier_curves
from margrave.scale._mam import fit_classifier as fit_classifier  # registers with fit and predict
from margrave.scale._predict import plain_rows as plain_rows
from margrave.scale._predict import predict
from margrave.scale._predict import predict_blocks as predict_blocks
from margrave.scale._roles import Draw as Draw
from margrave.scale._roles import draw_rows as draw_rows
from margrave.scale._steer import TunedRows as TunedRows
from margrave.scale._steer import check_strategies as check_strategies
from margrave.scale._steer import fit_steered as fit_steered
from margrave.scale._steer import tune_rows as tune_rows

# Names imported with "as" are for the other packages of Margrave.
__all__ = ["cluster", "fit", "predict", "read_parquet", "sample"]
