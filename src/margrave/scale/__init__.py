"""Data larger than memory, and several machines: Dask's collections and clusters.

`cluster` sets where Dask computes, `read_parquet` opens a folder of files, and `sample` draws
rows into memory. `fit` fits estimators on Dask collections, `predict` applies models to them, and
`rank_margin_weights` weights the scores of a committee. These take Dask arrays and data frames too:
:class:`margrave.Scores`, :class:`margrave.Confusion`, :class:`margrave.mam.MAMClassifier`,
:class:`margrave.mam.MAMRanker`, :class:`margrave.steer.Frontier` and
:class:`margrave.steer.SteeredClassifier`.
"""

from margrave._dask.sample import sample
from margrave.scale._cluster import cluster
from margrave.scale._files import read_parquet
from margrave.scale._fit import fit
from margrave.scale._frontier import frontier_curves as frontier_curves
from margrave.scale._predict import plain_rows as plain_rows
from margrave.scale._predict import predict
from margrave.scale._predict import predict_blocks as predict_blocks
from margrave.scale._rank_margin import rank_margin_weights
from margrave.scale._roles import Draw as Draw
from margrave.scale._roles import draw_rows as draw_rows
from margrave.scale._steer import TunedRows as TunedRows
from margrave.scale._steer import check_strategies as check_strategies
from margrave.scale._steer import fit_steered as fit_steered
from margrave.scale._steer import tune_rows as tune_rows

# Names imported with "as" are for the other packages of Margrave.
__all__ = ["cluster", "fit", "predict", "rank_margin_weights", "read_parquet", "sample"]
