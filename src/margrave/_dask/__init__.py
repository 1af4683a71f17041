"""Computations on the blocks of Dask collections, for the methods and `margrave.scale`."""
