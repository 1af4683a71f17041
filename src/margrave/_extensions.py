"""Access from lower packages of Margrave to upper ones."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any


def load_extension(name: str) -> Any:
    """Load an extension that an upper package of Margrave registers as an entry point.

    A lower package may not import an upper one. A method of a lower package that needs one, such as
    ``Dialog.open``, calls this function instead.

    Parameters
    ----------
    name : str
        The name of the entry point: "onnx" or "studio".
    """
    for entry in entry_points(group="margrave.extensions", name=name):
        return entry.load()
    raise ModuleNotFoundError(
        f"The installed Margrave does not register its extension {name!r}; install Margrave again."
    )
