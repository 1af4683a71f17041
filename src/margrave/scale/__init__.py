"""Beyond memory and beyond one machine: Dask's collections and clusters.

`cluster` says where the work is done, `read_parquet` opens a folder of files, and `sample` draws
rows into memory. What takes Dask arrays and data frames: :class:`margrave.Scores`,
:class:`margrave.Confusion`, :func:`margrave.fuse.rank_margin_weights`,
:class:`margrave.fuse.RankMarginClassifier`, :class:`margrave.mam.MAMClassifier`,
:class:`margrave.mam.MAMRanker`, :class:`margrave.steer.Frontier` and
:class:`margrave.steer.SteeredClassifier`.
"""

from margrave.scale._cluster import cluster
from margrave.scale._files import read_parquet
from margrave.scale._sample import sample

__all__ = ["cluster", "read_parquet", "sample"]
