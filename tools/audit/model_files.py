"""Hostile files of models and ledgers, read in a child process with limits of time and memory.

It holds if the file is refused with a FileError, or gives a model that predicts or raises an error
when it does: the command line reports such a model as damaged. It fails if the process crashes or
does not end, if code of the file is executed, or if loading raises any other error. A file has to
be refused if it was edited without a new digest, if it would take much memory, or if it has damaged
accounts of certification data.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import pickle
import random
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tools.audit._attacks import Attack
from tools.audit._children import Child

from margrave.steer import (
    Dialog,
    FileError,
    FileLedger,
    GuaranteeError,
    RowSample,
    SteeredClassifier,
)
from margrave.steer._files import with_digest

SECONDS = 10.0
MEMORY = 2 << 30
N_FEATURES = 5

Members = dict[str, bytes]
"""The members of a zip archive, by name."""

File = tuple[str, Callable[[], bytes]]
"""What is wrong with a file, and what makes it: to make them all takes longer than to load some."""


@cache
def accepted_dialog() -> Dialog:
    """A dialog of a committee with every kind of part that a file may hold."""
    X, y = make_classification(400, N_FEATURES, random_state=0)
    committee = [
        ("logistic", LogisticRegression()),
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
        ("trees", ExtraTreesClassifier(3, max_depth=3, random_state=0)),
        ("boosting", HistGradientBoostingClassifier(max_iter=3, random_state=0)),
        ("knn", KNeighborsClassifier()),
    ]
    dialog = Dialog.from_data(X, y, committee=committee, random_state=0)
    dialog.prefer("fp <= 20%", strategies=["move"])
    dialog.accept(confidence=0.8)
    return dialog


@cache
def model_bytes() -> bytes:
    """The file of the certified model."""
    return accepted_dialog().accepted[0].model.to_bytes()


def unpack(data: bytes) -> Members:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members: Members) -> bytes:
    """Write an archive with its digest, so that what lies behind the digest is tested."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return with_digest(buffer.getvalue())


def with_schema(change: Callable[[Any], Any]) -> Callable[[], bytes]:
    """Alter the schema of the model's file."""

    def make() -> bytes:
        members = unpack(model_bytes())
        schema = json.loads(members["schema.json"])
        changed = change(schema)
        members["schema.json"] = json.dumps(schema if changed is None else changed).encode()
        return pack(members)

    return make


def arrays(members: Members) -> list[str]:
    """The names of the members that are arrays."""
    return sorted(name for name in members if name.endswith(".npy"))


def saved(array: np.ndarray) -> bytes:
    """The bytes of an array's file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def nodes_of(node: Any) -> Iterator[dict[str, Any]]:
    """All objects in a schema."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from nodes_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from nodes_of(value)


# The files


def damaged(rng: random.Random) -> Iterator[File]:
    """Archives that are no archives, or not whole."""
    good = model_bytes()
    yield "good", model_bytes
    yield "empty", bytes
    for n in (1, 10, len(good) // 4, len(good) // 2, len(good) - 1, len(good) - 30):
        yield f"first {n} bytes", partial(bytes, good[:n])
    for i in range(6):
        altered = bytearray(good)
        for _ in range(1 + 10 * i):
            altered[rng.randrange(len(altered))] = rng.randrange(256)
        yield f"altered bytes {i}", partial(bytes, altered)
    yield "junk", partial(bytes, rng.randbytes(10_000))
    yield "pickle", partial(pickle.dumps, _Evil())
    yield "pickle in an archive", partial(pack, {"schema.json": pickle.dumps(_Evil())})
    yield "no schema", partial(pack, {"other": b""})
    yield "schema of junk", partial(pack, {"schema.json": rng.randbytes(100)})
    yield "schema is null", partial(pack, {"schema.json": b"null"})
    yield "deep schema", partial(pack, {"schema.json": b"[" * 100_000})
    yield "path outside", partial(pack, {**unpack(good), "../../outside.npy": b"x"})
    yield "20,000 members", partial(many_members, 20_000)


def many_members(count: int) -> bytes:
    """The model's file with many members, one of them with a long name."""
    file = io.BytesIO(model_bytes())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x" * 60_000, b"")
        for i in range(count):
            archive.writestr(f"{i}", b"")
    return with_digest(file.getvalue())


class _Evil:
    """Pickled, it would make a file that shows that code was executed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch margrave-audit-was-here",)


def altered_schemas(rng: random.Random) -> Iterator[File]:
    """Schemas with other types, other modules, loops and missing parts."""
    for module, name in (
        ("os", "system"),
        ("builtins", "eval"),
        ("subprocess", "Popen"),
        ("margrave.studio.store", "Store"),
        ("margrave.steer", "Dialog"),
        ("margrave._atomic_write", "atomic_write"),
        ("margrave.nowhere", "Nothing"),
        ("", ""),
        ("margrave.steer._steered", "SteeredClassifier.__init__"),
    ):
        changed = {"__module__": module, "__class__": name}
        yield f"root {module}.{name}", with_schema(lambda schema, c=changed: schema.update(c))
    yield "no format", with_schema(lambda schema: schema.pop("_margrave") and None)
    for value in (None, "x", -1, 10**400, [], {}):
        yield (
            f"format {value!r:.20}",
            with_schema(lambda schema, v=value: schema["_margrave"].update(format=v)),
        )
        yield (
            f"protocol {value!r:.20}",
            with_schema(lambda schema, v=value: schema.update(protocol=v)),
        )
    count = len(list(nodes_of(json.loads(unpack(model_bytes())["schema.json"]))))
    for i in range(30):
        at, kind, own = rng.randrange(1, count), i % 5, random.Random(rng.random())  # noqa: S311

        def change(schema: Any, at: int = at, kind: int = kind, rng: random.Random = own) -> None:
            found = list(nodes_of(schema))
            node, other = found[at], found[rng.randrange(len(found))]
            if kind == 0:
                node.clear()
            elif kind == 1:
                node.update(copy.deepcopy(other))
            elif kind == 2 and "__loader__" in node:
                node["__loader__"] = rng.choice(["TypeNode", "NdArrayNode", "ReduceNode", "Nope"])
            elif kind == 3:
                node["__id__"] = 1
            else:
                key = rng.choice(sorted(node)) if node else "content"
                node[key] = rng.choice([None, 7, "x", [], {}, -1, 1e308, True])

        yield f"altered object {i}", with_schema(change)


def altered_trees(members: Members) -> Iterator[tuple[str, Members]]:
    """Trees whose nodes point to other nodes and features, or to none."""
    for name in arrays(members):
        nodes = _loaded(members[name])
        for column in nodes.dtype.names or ():
            if nodes.dtype[column].kind in "iu":
                for value in (10**6, -5, 0, np.iinfo(nodes.dtype[column]).max):
                    altered = nodes.copy()
                    altered[column] = np.asarray(value).astype(nodes.dtype[column])
                    yield f"tree: {column} = {value}", {**members, name: saved(altered)}
        if nodes.dtype.names:
            yield "tree: no nodes", {**members, name: saved(nodes[:0])}
            yield "tree: no last node", {**members, name: saved(nodes[:-1])}


def altered_arrays(rng: random.Random) -> Iterator[File]:
    """Arrays with other values, types and shapes; a part of the altered trees."""
    members = unpack(model_bytes())
    altered = list(altered_trees(members))
    yield from (
        (what, partial(pack, found)) for what, found in rng.sample(altered, min(60, len(altered)))
    )
    for name in rng.sample(arrays(members), min(12, len(arrays(members)))):
        array = _loaded(members[name])
        header = b"\x93NUMPY\x01\x00"
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**12},), }}".ljust(117)
        huge = header + (118).to_bytes(2, "little") + text.encode() + b"\n"
        for what, content in (
            ("huge declared shape", huge),
            ("other shape", saved(np.zeros((3, 3, 3)))),
            ("no values", saved(array[:0] if array.ndim else np.zeros(0))),
            ("texts", saved(np.array(["a", "b"]))),
            ("NaN", saved(np.full(np.shape(array), np.nan))),
            ("pickled objects", saved(np.array([_Evil()], dtype=object))),
            ("junk", rng.randbytes(200)),
        ):
            yield f"array: {what}", partial(pack, {**members, name: content})


def large_files(_rng: random.Random) -> Iterator[File]:
    """Small files that would take much memory, or declare sizes that are not those of members."""
    good = unpack(model_bytes())
    yield "member bomb", lambda: pack({**good, "more.npy": bytes(600_000_000)})
    yield "schema bomb", lambda: pack({"schema.json": b"[" + b"[]," * 20_000_000 + b"[]]"})
    yield "padded schema", lambda: pack({**good, "schema.json": good["schema.json"] + b" " * 10**8})
    yield (
        "archive of archives",
        lambda: pack({**good, **{f"{i}.npz": pack({"data.npy": bytes(10**8)}) for i in range(4)}}),
    )
    yield "archives within archives", partial(_nested, 2000)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"method {method}", partial(_with_member, bytes(10**8), 10**8, method)
    yield "declares little", partial(_with_member, bytes(10**9), 100, zipfile.ZIP_DEFLATED, True)
    yield "declares much", partial(_with_member, b"", 1 << 40, zipfile.ZIP_DEFLATED)
    yield "one array of many objects", _many_objects
    yield "200,000 members", partial(many_members, 200_000)
    yield "the same name twice", partial(_with_member, b"", 0, zipfile.ZIP_STORED)


def _nested(depth: int) -> bytes:
    content = b"PK"
    for _ in range(depth):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("x", content)
        content = buffer.getvalue()
    return pack({**unpack(model_bytes()), "x.npz": content})


def _with_member(content: bytes, declared: int, method: int, is_used: bool = False) -> bytes:
    """The model's file with a member that declares a size, and its checksum for this size."""
    buffer = io.BytesIO()
    members = unpack(model_bytes())
    name = arrays(members)[0]
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one, own in members.items():
            if one != name or not is_used:
                archive.writestr(one, own)
        archive.writestr(name if declared in (0, 100) else "more.npy", content, method)
        info = archive.infolist()[-1]
        info.file_size, info.CRC = declared, zlib.crc32(content[:declared])
    return with_digest(buffer.getvalue())


def _many_objects() -> bytes:
    members = {**unpack(model_bytes()), "1.npy": saved(np.zeros(2_500_000))}
    schema = json.loads(members["schema.json"])
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    nodes = [{**node, "type": "numpy", "file": "1.npy", "__id__": i} for i in range(200)]
    several = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    schema["content"]["content"]["certificate_"] = {**several, "content": nodes}
    return pack({**members, "schema.json": json.dumps(schema).encode()})


def edited_files(rng: random.Random) -> Iterator[File]:
    """The model's file, edited and packed again, with no digest or with the old one."""
    good, members = model_bytes(), unpack(model_bytes())
    texts = [b'"0.8"', b'"0.2"', b'"spam"', b"0.", b"threshold", b"certificate"]
    for text in texts:
        schema = members["schema.json"].replace(text, text[:-1] + b"9" + text[-1:])
        body = pack({**members, "schema.json": schema})[:-64]
        yield f"edited {text!r}, no digest", partial(bytes, body[:-2] + b"\0\0")
        yield f"edited {text!r}, the old digest", partial(bytes, body + good[-64:])
    for i in range(20):
        name = rng.choice(arrays(members))
        content = bytearray(members[name])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        body = pack({**members, name: bytes(content)})[:-64]
        yield f"edited array {i}", partial(bytes, body + good[-64:])
    yield "no digest", partial(bytes, pack(members)[:-66] + b"\0\0")


BAD_ACCOUNTS: tuple[tuple[str, Any], ...] = (
    *(("part", part) for part in (0, -5, 1, True, float("nan"), float("inf"), "x", 10**400, None)),
    *(("outcome", outcome) for outcome in ("other", 7, None)),
    *(("delta", delta) for delta in (0, -0.05, 1, 7, True, float("nan"), "x", 10**400, None)),
    *(("hashes", hashes) for hashes in ([], [2, 1], [1, 1], list(range(10_000)))),
    *(("uses", uses) for uses in ((), "twice")),
    ("target", 7),
)


def with_bad_account(dialog: Dialog, field: str, value: Any) -> Dialog:
    """Alter the account in the ledger of a copy of a dialog."""
    dialog = copy.deepcopy(dialog)
    (account,) = dialog.ledger.read()
    value = account.uses * 2 if value == "twice" else value
    owner: Any = {"part": account.uses[0], "outcome": account.uses[0], "hashes": account.rows}
    value = np.array(value, np.uint64) if field == "hashes" else value
    object.__setattr__(owner.get(field, account), field, value)
    return dialog


def altered_dialogs(_rng: random.Random) -> Iterator[File]:
    """Dialogs with accounts of certification data that would grant what is used up."""
    for field, value in BAD_ACCOUNTS:
        make = partial(with_bad_account, accepted_dialog(), field, value)
        yield f"{field} = {value!r:.20}", lambda make=make: make().to_bytes()


def altered_ledgers(rng: random.Random) -> Iterator[File]:
    """Files of ledgers with altered accounts, with the right digest and with the old one."""
    good = _ledger_file(accepted_dialog())
    for field, value in BAD_ACCOUNTS:
        make = partial(with_bad_account, accepted_dialog(), field, value)
        yield f"{field} = {value!r:.20}", lambda make=make: _ledger_file(make())
    for text in (
        b"",
        b"[]",
        b"{}",
        b"null",
        b'"x"',
        b"7",
        b"[" * 100_000,
        b"\xff\xfe",
        b"9" * 10_000,
    ):
        yield f"{text!r:.20}", partial(bytes, text)
    for n in (1, len(good) // 2, len(good) - 2):
        yield f"first {n} bytes", partial(bytes, good[:n])
    for i in range(60):
        altered = bytearray(good)
        altered[rng.randrange(len(altered))] = rng.randrange(256)
        if json_of(altered) != json_of(good):
            yield f"altered byte {i}", partial(bytes, altered)


def json_of(content: bytes | bytearray) -> Any:
    """What a text says in JSON, or itself: spaces are free in the file of a ledger."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content


def _ledger_file(dialog: Dialog) -> bytes:
    """The file of a ledger with the accounts of a dialog."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.json")
        with FileLedger(path).open() as accounts:
            accounts += dialog.ledger.read()
        return path.read_bytes()


def need_damaged(content: bytes) -> str | None:
    """Load a file that has to be refused as damaged; return None if it was."""
    try:
        Dialog.from_bytes(content)
    except FileError as error:  # with the code "kind", the content of a model was loaded
        return None if error.code == "damaged" else f"FileError: {error.code}"
    except Exception as error:
        return f"load: {type(error).__name__}: {str(error)[:150]}"
    return "it was loaded"


def need_refusal(content: bytes) -> str | None:
    """Use rows that are used up by the file of a ledger; return None if they are refused."""
    (account,) = accepted_dialog().ledger.read()
    request = {"name": "another", "preference": "fp <= 1%", "delta": account.delta}
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.json")
        path.write_bytes(content)
        try:
            with FileLedger(path).use(RowSample(account.rows.hashes), **request) as grant:
                return f"granted {grant.part}"
        except FileError as error:
            return None if error.code == "damaged" else f"FileError: {error.code}"
        except GuaranteeError as error:
            return None if error.code == "used_up" else f"GuaranteeError: {error.code}"
        except Exception as error:
            return f"use: {type(error).__name__}: {str(error)[:150]}"


def _loaded(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def load_and_predict(content: bytes) -> str | None:
    """Load a file and predict with it; return None if it holds, or else what happened."""
    X = np.random.default_rng(0).normal(size=(50, N_FEATURES))
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        path = Path(folder) / "model.skops"
        path.write_bytes(content)
        try:
            model = SteeredClassifier.load(path)
        except FileError as error:
            found = None if len(str(error)) > 15 else f"FileError without a message: {error}"
        except Exception as error:
            found = f"load: {type(error).__name__}: {str(error)[:150]}"
        else:
            with contextlib.suppress(Exception):
                model.predict(X)
            found = None
        if {one.name for one in Path(folder).iterdir()} != {"model.skops"}:
            found = "a file was written: code of the model file was executed"
        os.chdir("/")
    return found


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Load the files, or `count` of each kind."""
    either = "refused, or a prediction"
    for name, kind, job, outcome in (
        ("damaged model files", damaged, load_and_predict, either),
        ("model files with an altered schema", altered_schemas, load_and_predict, either),
        ("model files with altered arrays", altered_arrays, load_and_predict, either),
        ("model files that would take much memory", large_files, need_damaged, "refused"),
        ("model files edited without a digest", edited_files, need_damaged, "refused"),
        ("dialogs with altered accounts", altered_dialogs, need_damaged, "refused"),
        ("ledgers with altered accounts", altered_ledgers, need_refusal, "refused"),
    ):
        with Child(job, SECONDS, MEMORY) as child:
            attack = Attack(name, f"{outcome}, within {SECONDS:g} s")
            files = list(kind(random.Random(seed)))  # noqa: S311
            if count is not None and count < len(files):
                files = random.Random(seed).sample(files, count)  # noqa: S311
            for what, make in files:
                problem = child.run(make())
                attack.check(problem is None, f"{what}: {problem}")
            yield attack
