"""Hostile model files: each is loaded in a child process with limits of time and memory.

It holds if the file is refused with a FileError, or gives a model that predicts or raises an error
when it does: the command line reports such a model as damaged. It fails if the process crashes or
does not end, if code of the file is executed, or if loading raises any other error.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import pickle
import random
import zipfile
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

from margrave.steer import Dialog, FileError, SteeredClassifier

SECONDS = 10.0
MEMORY = 2 << 30
N_FEATURES = 5

Members = dict[str, bytes]
"""The members of a zip archive, by name."""

File = tuple[str, Callable[[], bytes]]
"""What is wrong with a file, and what makes it: to make them all takes longer than to load some."""


@cache
def model_bytes() -> bytes:
    """A steered committee with every kind of part that a file may hold."""
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
    return dialog.accept(confidence=0.8).to_bytes()


def unpack(data: bytes) -> Members:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members: Members) -> bytes:
    """Write an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


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
    yield "schema bomb", lambda: pack({"schema.json": b" " * 200_000_000 + b"{}"})
    yield "member bomb", lambda: pack({**unpack(good), "more.npy": b"\x00" * 400_000_000})
    yield "path outside", partial(pack, {**unpack(good), "../../outside.npy": b"x"})
    yield "20,000 members", many_members


def many_members() -> bytes:
    """The model's file with many members, one of them with a long name."""
    file = io.BytesIO(model_bytes())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x" * 60_000, b"")
        for i in range(20_000):
            archive.writestr(f"{i}", b"")
    return file.getvalue()


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
    with Child(load_and_predict, SECONDS, MEMORY) as child:
        for name, kind in (
            ("damaged model files", damaged),
            ("model files with an altered schema", altered_schemas),
            ("model files with altered arrays", altered_arrays),
        ):
            attack = Attack(name, f"refused, or a prediction, within {SECONDS:g} s")
            files = list(kind(random.Random(seed)))  # noqa: S311
            if count is not None and count < len(files):
                files = random.Random(seed).sample(files, count)  # noqa: S311
            for what, make in files:
                problem = child.run(make())
                attack.check(problem is None, f"{what}: {problem}")
            yield attack
