"""Dialogs and models in files, by skops: no code of a file is ever executed.

A file is written beside its place and then renamed, so that an interrupted write leaves what was
there. Only types of Margrave and those scikit-learn models are made of are read back; a file that
holds another is refused before anything of it is built.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

from margrave._atomic_write import atomic_write
from margrave._messages import missing_extra

T = TypeVar("T")

# Parts of scikit-learn's models that skops does not know by itself, which hold arrays only; and
# the limits of preferences.
_PARTS = frozenset(
    {
        "fractions.Fraction",
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.tree._tree.Tree",
    }
)


_COMPRESSED: dict[str, Any] = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}


class FileError(ValueError):
    """A file that cannot be read as what it should be."""

    __module__ = "margrave.steer"


def _is_known(name: str) -> bool:
    """Whether a type is a class of Margrave's, or a part of scikit-learn's models."""
    module, _, attribute = name.rpartition(".")
    if name in _PARTS or not module.startswith("margrave."):
        return name in _PARTS
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__.startswith("margrave.")


@contextmanager
def _without_wrappers() -> Iterator[None]:
    """Import nothing that scikit-learn only wraps: skops looks into all of it on the way.

    Where PyTorch is installed it would be imported for nothing, which takes seconds.
    """
    names = [f"sklearn.externals.array_api_compat.{one}" for one in ("cupy", "dask", "torch")]
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: not to be found
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def _skops() -> ModuleType:
    try:
        with _without_wrappers():
            import skops.io
    except ModuleNotFoundError as error:
        raise ImportError(missing_extra("A saved model or dialog", "skops", "app")) from error
    return skops.io  # type: ignore[no-any-return]


def save_object(what: Any, path: str | Path) -> None:
    """Write an object to a file, all of it or nothing."""
    data = dump_bytes(what)
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(data)


def load_object(path: str | Path, kind: type[T], trusted: Sequence[str] = ()) -> T:
    """Read an object of one kind.

    Raises
    ------
    FileError
        If it is not there, damaged, of another kind, or holds types that are not trusted.
    """
    _skops()
    place = Path(path)
    if not place.is_file():
        raise FileError(f"There is no file {str(place)!r}.")
    return load_bytes(place.read_bytes(), kind, trusted, place.name)


def dump_bytes(what: Any) -> bytes:
    """An object as the bytes of a file.

    As ``skops.io.dumps`` makes them, without the indents, which take about half of its time.
    """
    _skops()
    version = import_module("skops").__version__
    inside: Any = import_module("skops.io._utils")
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", **_COMPRESSED) as archive:
        context = inside.SaveContext(zip_file=archive)
        state = inside.get_state(what, context)
        context.clear_memo()
        state |= {"protocol": context.protocol, "_skops_version": version}
        archive.writestr("schema.json", json.dumps(state))
    return buffer.getvalue()


def load_bytes(data: bytes, kind: type[T], trusted: Sequence[str] = (), name: str = "data") -> T:
    """Read an object of one kind from the bytes of a file, as :func:`load_object` does."""
    io = _skops()
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            broken = archive.testzip()
        found = set(io.get_untrusted_types(data=data))
    except Exception as error:
        raise FileError(f"{name!r} is damaged, or no file of Margrave's.") from error
    if broken is not None:
        raise FileError(f"{name!r} is damaged, or no file of Margrave's.")
    others = sorted(one for one in found - set(trusted) if not _is_known(one))
    if others:
        raise FileError(
            f"{name!r} holds types that are not trusted: {', '.join(others)}. If you know "
            "where the file is from, name them in trusted=."
        )
    try:
        loaded = io.loads(data, trusted=sorted(found))
    except Exception as error:
        raise FileError(f"{name!r} is damaged, or no file of Margrave's.") from error
    if not isinstance(loaded, kind):
        raise FileError(f"{name!r} holds a {type(loaded).__name__}; a {kind.__name__} is needed.")
    return loaded


class Saved:
    """What can be written to a file and read from it."""

    def save(self, path: str | Path) -> None:
        """Write it to a file, all of it or nothing.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.
        """
        save_object(self, path)

    @classmethod
    def load(cls, path: str | Path, *, trusted: Sequence[str] = ()) -> Self:
        """Read it from a file that :meth:`save` wrote. No code of the file is executed.

        Parameters
        ----------
        path : str or Path
            The file.
        trusted : list of str, optional
            Types of your own models that may be read, as ``package.module.Class``.

        Returns
        -------
        object
            One of this class.

        Raises
        ------
        FileError
            If the file is not there, damaged, of another kind, or holds types not trusted.
        """
        return load_object(path, cls, trusted)
