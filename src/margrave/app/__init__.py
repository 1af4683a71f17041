"""What the command line and the studio are made of: tables, requests, reports.

:func:`read_samples` is for scripts: a table as both of them read it.
"""

from margrave.app._samples import Samples, read_samples

__all__ = ["Samples", "read_samples"]
