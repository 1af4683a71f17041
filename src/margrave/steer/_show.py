"""A dialog shows itself: in a notebook as HTML, and in a browser through a viewer."""

from __future__ import annotations

from importlib.metadata import entry_points

from margrave._extras import missing_extra
from margrave.steer._html import dialog_html

_VIEWERS = "margrave.viewers"


class Shown:
    """What shows itself."""

    def _repr_html_(self) -> str:
        """The matrix where it stands, and the last steps."""
        return dialog_html(self)

    def open(self, *, browser: bool = True) -> str:
        """Open the studio on this dialog: what is done there is done to it, and the reverse.

        It is served by this process, for users of this machine, until the process ends.

        Parameters
        ----------
        browser : bool, default=True
            Whether to open it in a browser; else its address is given only.

        Returns
        -------
        str
            The address of the page.

        Raises
        ------
        ImportError
            If the studio is not installed.
        """
        # The studio builds on this room, so it is found by its name and not imported.
        viewers = entry_points(group=_VIEWERS)
        try:
            view = next(iter(viewers)).load()
        except (StopIteration, ModuleNotFoundError) as error:
            raise ImportError(missing_extra("Dialog.open", "the studio", "studio")) from error
        address: str = view(self, browser=browser)
        return address
