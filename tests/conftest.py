import sys

from hypothesis import settings

# Imported, skops lists scikit-learn's estimators, and on the way imports what scikit-learn
# wraps, if it is there: seconds of PyTorch in every process. No test asks for the wrappers.
for _package in ("cupy", "dask", "torch"):
    sys.modules.setdefault(f"sklearn.externals.array_api_compat.{_package}", None)

# A first call may import scipy's solvers, and a busy machine is slow: time is not what is tested.
settings.register_profile("margrave", deadline=None, parent=settings())
settings.load_profile("margrave")
