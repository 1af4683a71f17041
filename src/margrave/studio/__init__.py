"""The studio: the dialog over the confusion matrix, in a browser (document 004, figures 1 to 3).

``margrave studio`` starts it, and :meth:`margrave.steer.Dialog.open` opens it on a dialog of a
notebook. The page is in ``static``; the API that it uses describes itself at ``/api/openapi.json``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.studio.launch import view as view
    from margrave.studio.server import create_app as create_app
    from margrave.studio.server import open_studio as open_studio
    from margrave.studio.settings import Limits as Limits
    from margrave.studio.settings import Settings as Settings

# Loaded when first used: the process that reads an uploaded file needs no server.
_PLACES = {
    "Limits": "settings",
    "Settings": "settings",
    "create_app": "server",
    "open_studio": "server",
    "view": "launch",
}
__all__ = ["Limits", "Settings", "create_app", "open_studio", "view"]


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
