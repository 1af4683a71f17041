"""The studio: the dialog over the confusion matrix, in a browser.

It follows figures 1 to 3 of Kulkarni et al., "Interactive Martingale Boosting".

``margrave studio`` starts it, and :meth:`margrave.steer.Dialog.open` opens a
notebook's dialog in it. The page is in ``static``; ``/api/openapi.json`` describes the API that the
page uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.studio.launch import view as view
    from margrave.studio.server import create_app as create_app
    from margrave.studio.server import open_studio as open_studio
    from margrave.studio.settings import Limits as Limits
    from margrave.studio.settings import Settings as Settings

# Imported on first use: the process that reads an uploaded file needs no server.
_MODULES = {
    "Limits": "settings",
    "Settings": "settings",
    "create_app": "server",
    "open_studio": "server",
    "view": "launch",
}
__all__ = ["Limits", "Settings", "create_app", "open_studio", "view"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
