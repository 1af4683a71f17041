"""Kernel sums with PyTorch: on a GPU fused by Triton, else in chunks of the kernel matrix.

PyTorch is an extra and takes seconds to import. Nothing here imports it before it computes.
"""

from margrave.mam.gpu._backend import choose_device as choose_device
from margrave.mam.gpu._backend import compute_sums as compute_sums
from margrave.mam.gpu._backend import sums_by_torch as sums_by_torch
from margrave.mam.gpu._torch import DeviceTask as DeviceTask
from margrave.mam.gpu._torch import SumTask as SumTask
