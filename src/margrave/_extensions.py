"""Upper packages that a lower one offers a convenience for."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any


def load_extension(name: str) -> Any:
    """Load what an upper package of Margrave registers, by the name of its entry point.

    A lower package may not import an upper one; where a method of the lower one is a convenience
    for the upper one, it calls this.

    Parameters
    ----------
    name : str
        "dask", "onnx" or "studio".
    """
    for entry in entry_points(group="margrave.extensions", name=name):
        return entry.load()
    raise ModuleNotFoundError(
        f"The installed Margrave does not register its extension {name!r}: install it again."
    )
