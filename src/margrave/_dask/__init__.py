"""Dask collections, block by block: what the methods and `margrave.scale` share."""
