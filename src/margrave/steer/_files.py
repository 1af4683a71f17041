"""Saved dialogs and models, in files that skops writes: loading one never executes its code.

A file is written beside its destination and then renamed, so that an interrupted write leaves the
old file. Loading accepts Margrave's own types and the parts of scikit-learn models; a file with any
other type is refused before an object is built. Each file names its format, which grows by one
when a change of the classes makes older files unreadable. It ends with a digest of itself, which
shows damage and careless edits; whoever edits a file on purpose can write the digest as well.
"""

from __future__ import annotations

import json
import math
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Self, TypeVar

import margrave
from margrave._archive import CARD, DIGEST, digest
from margrave._atomic_write import atomic_write
from margrave._errors import MargraveError
from margrave._messages import missing_extra

T = TypeVar("T")

_FORMAT = 8  # files of format 1 do not name it
_STAMP = "_margrave"

# Parts of scikit-learn models that skops does not trust by default and that hold arrays only; and
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


# The packages whose classes are in a model or a dialog. Others have classes that open a store or
# start processes when they are built, which a file must not make them do; nor write another file.
_PACKAGES = frozenset(
    {
        *("committee", "confusion", "fuse", "mam", "martingale", "members"),
        *("pairs", "scores", "select", "steer", "table"),
    }
)
_WRITES_FILES = ("margrave.steer._ledger", "FileLedger")


_COMPRESSED: dict[str, Any] = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}
# A file is refused if it unpacks to more than some bytes and so many times its own size: then a
# small file needs little memory. Forests unpack to 4 to 6 times the size of their file, and their
# schema alone, which takes about 30 times its size when it is parsed, to 5 times. Constant columns
# are compressed to a 200th; what exceeds the limits is saved without compression.
_RATIO = 8
_MOST_FREE, _SCHEMA_FREE = 256 << 20, 8 << 20
_MOST_MEMBERS = 100_000  # each takes time; the file of a forest has five for each tree


class FileError(MargraveError):
    """A file that cannot be loaded.

    Attributes
    ----------
    code : str
        "missing", "damaged" (or edited), "format" (another version of Margrave wrote it), "kind"
        (it holds another object) or "untrusted" (it holds types that are not trusted).
    fields : dict
        The ``name`` of the file, and the values that the message mentions.

    Examples
    --------
    >>> from margrave.steer import Dialog, FileError
    >>> try:
    ...     Dialog.load("spam.dialog")
    ... except FileError as error:
    ...     print(error.code, error.fields)
    missing {'name': 'spam.dialog'}
    """

    __module__ = "margrave.steer"


def _is_known(name: str) -> bool:
    """Whether a type is a class of Margrave or a part of a scikit-learn model."""
    module, _, attribute = name.rpartition(".")
    top, _, within = module.partition(".")
    if name in _PARTS or top != "margrave" or within.partition(".")[0] not in _PACKAGES:
        return name in _PARTS
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    return (
        isinstance(found, type)
        and found.__module__.startswith("margrave.")
        and (found.__module__, found.__name__) != _WRITES_FILES
    )


_importing = Lock()  # the modules of the process are changed while skops is imported


@contextmanager
def _without_wrappers() -> Iterator[None]:
    """Hide scikit-learn's array wrappers from skops, which imports all of them.

    Where PyTorch is installed, its import alone takes seconds.
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
        with _importing:
            if "skops.io" not in sys.modules:
                with _without_wrappers():
                    import_module("skops.io")
            import skops.io
    except ModuleNotFoundError as error:
        raise ImportError(missing_extra("A saved model or dialog", "skops", "app")) from error
    return skops.io  # type: ignore[no-any-return]


def save_object(what: Any, path: str | Path, card: dict[str, Any] | None = None) -> None:
    """Write an object to a file; an interrupted write leaves the old file."""
    data = dump_bytes(what, card)
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(data)


def load_object(path: str | Path, kind: type[T], trusted: Sequence[str] = ()) -> T:
    """Read an object of one kind.

    Raises
    ------
    FileError
        If it is missing, damaged, of another format or kind, or holds types that are not trusted.
    """
    return load_bytes(_read(path), kind, trusted, Path(path).name)


def trusted_types(path: str | Path) -> list[str]:
    """List the types in a file that Margrave trusts, and skops does not by default.

    ``skops.io.load`` and MLflow need this list. They load the file without Margrave's other checks,
    so use it for files that you wrote.

    Parameters
    ----------
    path : str or Path
        A file that `save` wrote.

    Returns
    -------
    list of str
        Classes of Margrave and parts of scikit-learn's models, as ``package.module.Class``; never a
        class of your own.

    Raises
    ------
    FileError
        If the file is missing, damaged or of another format.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import skops.io
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier, trusted_types
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier("logistic", random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.skops"
    ...     model.save(path)
    ...     loaded = skops.io.load(path, trusted=trusted_types(path))
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    name = Path(path).name
    with _refusing_damage(name):
        types = _open(_read(path), name)[2]
    return sorted(filter(_is_known, types))


def _read(path: str | Path) -> bytes:
    """Return the bytes of a file."""
    _skops()
    place = Path(path)
    if not place.is_file():
        raise FileError(f"There is no file {str(place)!r}.", code="missing", name=str(place))
    return place.read_bytes()


def dump_bytes(what: Any, card: dict[str, Any] | None = None) -> bytes:
    """Return the bytes of a file that holds an object, and its card if it has one.

    They are those of ``skops.io.dumps`` without its indentation, which takes half of its time, and
    with the format of the file.
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
        state[_STAMP] = {"format": _FORMAT, "version": margrave.__version__}
        schema = json.dumps(state)
        archive.writestr("schema.json", schema)
        if card is not None:
            archive.writestr(CARD, json.dumps(card, allow_nan=False))
    data, size = buffer.getvalue(), sum(one.file_size for one in archive.infolist())
    if any(name.endswith(".npz") for name in archive.namelist()):  # archives of sparse matrices
        size = len(_unpack(data, math.inf))
    more = (_RATIO - 1) * len(data)  # one less, for the headers of the members
    is_dense = size > _MOST_FREE + more or len(schema) > _SCHEMA_FREE + more
    return with_digest(_unpack(data, math.inf) if is_dense else data)


def with_digest(data: bytes) -> bytes:
    """Return an archive with the digest of its bytes as its comment."""
    buffer = BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = bytes(DIGEST)
    body = buffer.getvalue()[:-DIGEST]
    return body + digest(body)


def _unpack(data: bytes, most: float) -> bytes:
    """Return an archive with the same members, not compressed.

    The sizes that the members declare are added up before one is read, and no more is read of it
    than it declares.
    """
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as packed, zipfile.ZipFile(buffer, "w") as plain:
        members = packed.infolist()
        if sum(one.file_size for one in members) > most:
            raise ValueError("the archive is too large")
        if not len({one.filename for one in members}) == len(members) <= _MOST_MEMBERS:
            raise ValueError("the archive has too many members, or two with the same name")
        if {one.compress_type for one in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ValueError("a member is compressed by a method that could exceed its size")
        for one in members:
            with packed.open(one) as file:
                content = file.read(one.file_size)
            if content[:2] == b"PK":  # the archive of a sparse matrix: NumPy goes by these bytes
                content = _unpack(content, most - buffer.tell())
            plain.writestr(one.filename, content)
            if buffer.tell() > most:
                raise ValueError("the archive is too large")
    return buffer.getvalue()


def load_bytes(data: bytes, kind: type[T], trusted: Sequence[str] = (), name: str = "data") -> T:
    """Read an object of one kind from the bytes of a file, as :func:`load_object` does."""
    io = _skops()
    with _refusing_damage(name):
        plain, schema, types = _open(data, name)
        unknown = sorted(one for one in types - set(trusted) if not _is_known(one))
        if unknown:
            raise FileError(
                f"{name!r} holds types that are not trusted: {', '.join(unknown)}. If you know "
                "where the file is from, name them in trusted=.",
                code="untrusted",
                name=name,
                types=unknown,
            )
        loaded = io.loads(plain, trusted=sorted(types))
        import_module("margrave.steer._check_loaded").check_loaded(loaded)
    if not isinstance(loaded, kind) or _STAMP not in schema:
        held = type(loaded).__name__
        raise FileError(
            f"{name!r} holds a {held}; a {kind.__name__} is needed.",
            code="kind",
            name=name,
            kind=held,
            needed=kind.__name__,
        )
    return loaded


def _open(data: bytes, name: str) -> tuple[bytes, dict[str, Any], set[str]]:
    """Check the bytes of a file; return them unpacked, their schema, and the types not trusted."""
    plain = _unpack(data, _MOST_FREE + _RATIO * len(data))
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        text = archive.read("schema.json")
    if len(text) > _SCHEMA_FREE + _RATIO * len(data):
        raise ValueError("the schema is too large")
    schema = json.loads(text, object_hook=partial(_check_record, owners={}))
    _check_format(schema, name)
    if _STAMP in schema and digest(memoryview(data)[:-DIGEST]) != data[-DIGEST:]:
        raise ValueError("the digest is not that of the file")
    return plain, schema, set(_skops().get_untrusted_types(data=plain))


@contextmanager
def _refusing_damage(name: str) -> Iterator[None]:
    """Raise a `FileError` for whatever fails while a file is read."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        raise FileError(
            f"{name!r} is damaged, or not a file that Margrave wrote.", code="damaged", name=name
        ) from error


def _check_record(record: dict[str, Any], owners: dict[str, Any]) -> dict[str, Any]:
    """Refuse records of the schema that would take too much memory or time.

    An array that many records name would be built for each of them, unless they have the same id.
    To compute a fraction with an exponent, such as "1e999999999", would take forever.
    """
    if isinstance(member := record.get("file"), str):
        owner = record["__id__"]
        if not owner or owners.setdefault(member, owner) != owner:
            raise ValueError("several objects of the file have the same array")
    if record.get("__class__") == "Fraction":
        for part in record["content"]["content"]:
            if "e" in part["content"].lower():
                raise ValueError("a fraction in the file has an exponent")
    return record


def _check_format(schema: dict[str, Any], name: str) -> None:
    """Refuse a file that an earlier or a newer Margrave wrote."""
    stamp = schema.get(_STAMP, {"format": 1, "version": "0.1.0.dev"})
    ours = str(schema["__module__"]).startswith("margrave.")
    if ours and stamp["format"] != _FORMAT:
        raise FileError(
            f"{name!r} was written by Margrave {stamp['version']}, in file format "
            f"{stamp['format']}; this version, {margrave.__version__}, reads format {_FORMAT}. "
            "Load it with the version that wrote it, or train and save again.",
            code="format",
            name=name,
            format=stamp["format"],
            version=stamp["version"],
            readable=_FORMAT,
        )


class Saved:
    """Adds `save` and `load` to a class."""

    def _for_file(self) -> Self:
        """Return what a file holds: this object, or a copy without what must not be in it."""
        return self

    def _card(self) -> dict[str, Any] | None:
        """Return what a file holds for readers that do not load the object, if anything."""
        return None

    def save(self, path: str | Path) -> None:
        """Write to a file; an interrupted write leaves the old file.

        Parameters
        ----------
        path : str or Path
            The file; an existing one is replaced.
        """
        save_object(self._for_file(), path, self._card())

    @classmethod
    def load(cls, path: str | Path, *, trusted: Sequence[str] = ()) -> Self:
        """Read a file that :meth:`save` wrote; no code of the file is executed.

        Parameters
        ----------
        path : str or Path
            The file.
        trusted : list of str, optional
            Types of your own models to accept, as ``package.module.Class``.

        Returns
        -------
        object
            An instance of this class.

        Raises
        ------
        FileError
            If it is missing, damaged, of another format or kind, or holds types not trusted.
        """
        return load_object(path, cls, trusted)

    def to_bytes(self) -> bytes:
        """Return the bytes of the file that :meth:`save` writes, for a store of your own.

        Returns
        -------
        bytes
        """
        return dump_bytes(self._for_file(), self._card())

    @classmethod
    def from_bytes(cls, data: bytes, *, trusted: Sequence[str] = ()) -> Self:
        """Read what :meth:`to_bytes` returned, as :meth:`load` reads a file.

        Parameters
        ----------
        data : bytes
            The bytes of a file.
        trusted : list of str, optional
            Types of your own models to accept, as ``package.module.Class``.

        Returns
        -------
        object
            An instance of this class.

        Raises
        ------
        FileError
            If they are damaged, of another format or kind, or hold types not trusted.
        """
        return load_bytes(data, cls, trusted)
