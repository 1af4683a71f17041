"""Import Dask and pyarrow, which are not part of the core, where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margrave._messages import missing_extra


def import_dask(owner: str, module: str = "dask") -> Any:
    """Import a module of the extra "dask".

    Parameters
    ----------
    owner : str
        The name of the caller, for the message.
    module : str, default="dask"
        The module to import.

    Raises
    ------
    ModuleNotFoundError
        If a package is not installed. The message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        message = missing_extra(owner, package, "dask")
        raise ModuleNotFoundError(message, name=package) from error
