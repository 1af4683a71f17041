"""Files: what is written comes back, and nothing else is ever built or executed."""

import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import margrave
from margrave.fuse import RankMarginClassifier
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic
from margrave.steer import (
    Dialog,
    FileError,
    GuaranteeError,
    Offsets,
    SteeredClassifier,
    Threshold,
    trusted_types,
)
from margrave.steer._files import _is_known, dump_bytes, with_digest

RANDOM = np.random.default_rng(6)
N = 300
CODES = RANDOM.integers(0, 2, N)
Y = np.array(["ham", "spam"])[CODES]
X = RANDOM.normal(size=(N, 3)) + CODES[:, None] * [1.5, 1.0, 0.0]


@pytest.fixture(scope="module")
def talked():
    """A dialog with a history that has a branch, a step undone and a model accepted."""
    dialog = Dialog.from_data(
        X, Y, committee=[("logistic", TunableLogistic()), ("bayes", GaussianNB())], random_state=0
    )
    dialog.prefer("fn <= 25%", strategies=["move"])
    dialog.prefer("fp <= 9, rejected <= 10%")
    dialog.goto(1)
    dialog.prefer("fn <= 15", strategies=["retune"])
    dialog.undo()
    dialog.accept(confidence=0.9)
    return dialog


@pytest.fixture
def dialog(talked):
    return copy.deepcopy(talked)


@pytest.fixture(scope="module")
def model_file(talked, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.skops"
    copy.deepcopy(talked).accept(confidence=0.9).save(path)
    return path


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def there_and_back(what, folder, **more):
    path = folder / "file.skops"
    what.save(path)
    return type(what).load(path, **more)


# There and back


def test_a_dialog_comes_back_as_it_was(dialog, tmp_path):
    loaded = there_and_back(dialog, tmp_path)
    assert type(loaded) is Dialog
    assert repr(loaded) == repr(dialog)
    assert [str(reply) for reply in loaded.history] == [str(reply) for reply in dialog.history]
    assert loaded.history == dialog.history
    assert loaded.position == dialog.position == 1
    for mine, other in zip(loaded.history, dialog.history, strict=True):
        np.testing.assert_array_equal(mine.model.predict(X), other.model.predict(X))
        np.testing.assert_array_equal(mine.candidate.scores, other.candidate.scores)
    assert str(loaded.compare(0, 3)) == str(dialog.compare(0, 3))
    assert str(loaded.frontier()) == str(dialog.frontier())
    assert loaded.support() == dialog.support()
    assert loaded.redo().preference == dialog.redo().preference


@pytest.mark.parametrize("strategy", ["move", "reject", "retune"])
def test_a_dialog_goes_on_as_it_would_have(dialog, tmp_path, strategy):
    loaded = there_and_back(dialog, tmp_path)
    mine, other = (
        one.prefer("fp <= 7, rejected <= 8%", strategies=[strategy], keep=True)
        for one in (loaded, dialog)
    )
    assert mine.after == other.after
    assert (mine.strategy, mine.n_candidates) == (other.strategy, other.n_candidates)
    np.testing.assert_array_equal(mine.model.predict(X), other.model.predict(X))


def schema_of(data):
    """What a file says of its objects, without the names that are new in every file."""

    def named(record):
        return {name: one for name, one in record.items() if name not in ("__id__", "file")}

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("schema.json"), object_hook=named)


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_schema(data, change):
    """The bytes of a file whose schema a function has changed in place."""
    members = members_of(data)
    schema = json.loads(members["schema.json"])
    change(schema)
    members["schema.json"] = json.dumps(schema).encode()
    return with_digest(archive_of(members))


def test_a_file_is_as_skops_would_write_it_with_its_format(talked):
    written = schema_of(dump_bytes(talked))
    assert written.pop("_margrave")["version"] == margrave.__version__
    assert written == schema_of(skops.io.dumps(talked))


@pytest.mark.parametrize("version", ["0.1.0", "77.0.0"])
def test_a_file_of_another_format_is_refused_by_its_version_and_left_alone(
    model_file, tmp_path, version
):
    def name_the_version(schema):
        stamp = schema.pop("_margrave")  # files of the first format have none
        if version == "77.0.0":
            schema["_margrave"] = {"format": stamp["format"] + 1, "version": version}

    path = tmp_path / "other.skops"
    before = with_schema(model_file.read_bytes(), name_the_version)
    path.write_bytes(before)
    with pytest.raises(FileError, match=rf"other\.skops.*\b{re.escape(version)}\b"):
        SteeredClassifier.load(path)
    assert path.read_bytes() == before


def test_a_file_leaves_out_the_table_that_its_user_has(talked, tmp_path):
    assert talked._given is X
    assert there_and_back(talked, tmp_path)._given is None


def test_what_is_used_up_stays_used_up(dialog, tmp_path):
    model = dialog.accept(confidence=0.9)
    loaded = there_and_back(dialog, tmp_path)
    again = loaded.accept(confidence=0.9)
    assert again.certificate_ == model.certificate_
    loaded.prefer("fn <= 40%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        loaded.accept(confidence=0.9)
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        loaded.accept(confidence=0.8)


def test_samples_brought_again_after_loading_are_still_used_up(tmp_path):
    dialog = Dialog.from_data(X[:200], Y[:200], committee=GaussianNB(), certify=None)
    dialog.prefer("fn <= 30%", strategies=["move"])
    dialog.accept(X[200:], Y[200:])
    loaded = there_and_back(dialog, tmp_path)
    loaded.prefer("fn <= 40%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        loaded.accept(X[200:], Y[200:])


def test_a_model_comes_back_as_it_was(dialog, model_file):
    model, loaded = dialog.accept(confidence=0.9), SteeredClassifier.load(model_file)
    for method in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    assert loaded.certificate_ == model.certificate_
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.model_card() == model.model_card()
    assert repr(loaded) == repr(model)
    near = X + 1e-4  # not the rows that the model was built from
    assert str(loaded.check(near, Y)) == str(model.check(near, Y))
    assert loaded.recertify(near, Y).certificate_ == model.recertify(near, Y).certificate_


def test_a_file_has_the_fields_of_its_objects_only(model_file):
    """What can be derived is not stored: a changed file could contradict itself."""
    model = SteeredClassifier.load(model_file)
    model.recertify(X + 1e-4, Y)  # not the rows that the model was built from
    found = set()

    def look(record):
        name, module = record.get("__class__"), record.get("__module__", "")
        kind = getattr(sys.modules[module], name) if module.startswith("margrave.") else None
        if record.get("__loader__") == "ObjectNode" and is_dataclass(kind):
            found.add(name)
            assert set(record["content"]["content"]) <= {field.name for field in fields(kind)}
        return record

    with zipfile.ZipFile(io.BytesIO(dump_bytes(model))) as archive:
        json.loads(archive.read("schema.json"), object_hook=look)
    assert {"Plan", "Threshold", "Certificate"} <= found


@pytest.mark.parametrize(
    ("n_classes", "decision"),
    [(2, Threshold(-0.5, 0.25)), (3, Offsets(np.array([0.5, 0.0, -0.5]), 1.5))],
)
def test_a_model_that_rejects_comes_back_as_it_was(tmp_path, n_classes, decision):
    y = np.argsort(np.argsort(X[:, 0])) * n_classes // len(X)
    model = SteeredClassifier(GaussianNB(), preference=None).fit(X, y)
    model.decision_ = decision
    loaded = there_and_back(model, tmp_path)
    predicted = model.predict(X)
    assert len(set(predicted.tolist())) > n_classes  # of all classes, and rejected
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 7]),
        np.array([False, True]),
        np.array([0.0, 1.0]),
        np.array(["a b", "ü"]),
        np.array(["a b", "ü"], dtype=object),
    ],
    ids=repr,
)
def test_labels_of_every_kind_come_back(tmp_path, labels):
    y = labels[CODES]
    dialog = Dialog(GaussianNB().fit(X[:150], y[:150]), X[150:], y[150:])
    dialog.prefer("fp <= 9, rejected <= 10%")
    loaded = there_and_back(dialog, tmp_path)
    assert loaded.confusion == dialog.confusion
    assert list(map(type, loaded.classes)) == list(map(type, dialog.classes))
    assert loaded.model.predict(X).tolist() == dialog.model.predict(X).tolist()


MODELS = {
    "pipeline": make_pipeline(StandardScaler(), TunableLogistic()),
    "svc": SVC(),
    "martingale": MartingaleBoostClassifier(n_levels=3),
    "rank margin": RankMarginClassifier([LogisticRegression(), GaussianNB()]),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_can_be_steered_can_be_saved_and_loaded(tmp_path, name):
    model = MODELS[name].fit(X[:150], Y[:150])
    dialog = Dialog(model, X[150:], Y[150:])
    dialog.prefer("fn <= 9")
    loaded = there_and_back(dialog, tmp_path)
    assert loaded.history == dialog.history
    assert loaded.model.predict(X).tolist() == dialog.model.predict(X).tolist()


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]),
        scipy.sparse.csr_matrix,
        scipy.sparse.csr_array,
        lambda rows: rows.astype(np.float32),
    ],
    ids=["frame", "sparse matrix", "sparse array", "float32"],
)
def test_tuning_samples_in_every_form_can_be_saved_and_loaded(tmp_path, form):
    rows = form(X)
    dialog = Dialog(LogisticRegression().fit(rows[:150], Y[:150]), rows[150:], Y[150:])
    dialog.prefer("fn <= 9")
    loaded = there_and_back(dialog, tmp_path)
    assert loaded.history == dialog.history
    assert loaded.prefer("fp <= 9").after == dialog.prefer("fp <= 9").after


def test_a_dialog_from_a_data_frame_can_be_saved_with_a_committee_of_ones_own(tmp_path):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    dialog = Dialog.from_data(table, Y, committee=GaussianNB(), random_state=0)
    loaded = there_and_back(dialog, tmp_path)
    assert loaded.confusion == dialog.confusion


# Writing


def test_an_interrupted_write_leaves_what_was_there(dialog, tmp_path, monkeypatch):
    path = tmp_path / "kept.skops"
    dialog.save(path)
    before = path.read_bytes()

    for error in (KeyboardInterrupt, OSError("disk full")):

        def broken(file, data, error=error):
            with file.open("wb") as half:
                half.write(data[: len(data) // 2])
            raise error

        monkeypatch.setattr(Path, "write_bytes", broken)
        with pytest.raises((KeyboardInterrupt, OSError)):
            dialog.save(path)
        assert path.read_bytes() == before
        assert names_in(tmp_path) == ["kept.skops"]
        with pytest.raises((KeyboardInterrupt, OSError)):
            dialog.save(tmp_path / "new.skops")
        assert names_in(tmp_path) == ["kept.skops"]


def test_what_cannot_be_replaced_is_not_lost(dialog, tmp_path):
    folder = tmp_path / "folder.skops"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        dialog.save(folder)
    assert names_in(tmp_path) == ["folder.skops"]
    with pytest.raises(FileNotFoundError):
        dialog.save(tmp_path / "nowhere" / "file.skops")


def test_a_file_is_replaced_and_paths_may_be_texts(dialog, tmp_path):
    path = tmp_path / "a file"
    path.write_bytes(b"old")
    dialog.save(str(path))
    assert len(Dialog.load(str(path)).history) == 4
    assert names_in(tmp_path) == ["a file"]


def test_a_file_cannot_say_where_its_dialog_saves_itself(dialog, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("kept")

    def name_my_file(schema):
        schema["content"]["content"]["_path"] = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": json.dumps(str(mine)),
            "is_json": True,
        }
        named = json.loads(json.dumps(schema["content"]["key_types"]["content"][0]))
        schema["content"]["key_types"]["content"].append(named)

    hostile = with_schema(dialog.to_bytes(), name_my_file)
    loaded = Dialog.from_bytes(hostile)
    loaded.accept(confidence=0.9)
    loaded.prefer("fn <= 40%", strategies=["move"])
    assert mine.read_text() == "kept"
    assert names_in(tmp_path) == ["mine.txt"]


@pytest.mark.parametrize("module", ["margrave.steer._ledger", "margrave.steer"])
def test_a_file_that_names_a_ledger_in_a_file_is_refused(dialog, module):
    def rename_ledgers(node):
        for one in node if isinstance(node, list) else node.values():
            if isinstance(one, dict | list):
                rename_ledgers(one)
        if isinstance(node, dict) and node.get("__class__") == "Ledger":
            node |= {"__class__": "FileLedger", "__module__": module}

    with pytest.raises(FileError) as refused:
        Dialog.from_bytes(with_schema(dialog.to_bytes(), rename_ledgers))
    assert refused.value.code == "untrusted"
    assert refused.value.fields["types"] == [f"{module}.FileLedger"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("delta", 7.0),
        ("delta", float("nan")),
        ("uses", ()),
        ("uses", {}),
        ("rows", None),
        ("target", 7),
        ("part", 0.0),
        ("part", -5.0),
        ("outcome", "other"),
    ],
)
def test_a_dialog_with_a_damaged_account_is_refused(dialog, field, value):
    (account,) = dialog.ledger.in_memory
    one = account.uses[0] if field in ("part", "outcome") else account
    object.__setattr__(one, field, value)
    with pytest.raises(FileError) as caught:
        Dialog.from_bytes(dialog.to_bytes())
    assert caught.value.code == "damaged"


@pytest.mark.parametrize("accounts", [{}, None, [7]])
def test_a_dialog_with_a_damaged_ledger_is_refused(dialog, accounts):
    dialog.ledger.in_memory = accounts
    with pytest.raises(FileError) as caught:
        Dialog.from_bytes(dump_bytes(dialog))
    assert caught.value.code == "damaged"


# Reading what is not ours


def refused(path, *named, kind=Dialog, **more):
    """The file is refused, by an error that names it and all of these."""
    with pytest.raises(FileError) as caught:
        kind.load(path, **more)
    for one in (path.name, *named):
        assert one in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_no_file(tmp_path):
    path = tmp_path / "none.skops"
    refused(path, repr(str(path)))
    refused(tmp_path, repr(str(tmp_path)))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_truncated(model_file, tmp_path, share):
    whole = model_file.read_bytes()
    path = tmp_path / "truncated.skops"
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path, kind=SteeredClassifier)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=200))
def test_any_bytes(tmp_path, noise):
    path = tmp_path / "noise.skops"
    path.write_bytes(noise)
    refused(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(model_file, tmp_path, place, bit):
    damaged = bytearray(model_file.read_bytes())
    damaged[int(place * len(damaged))] ^= 1 << bit
    path = tmp_path / "flipped.skops"
    path.write_bytes(bytes(damaged))
    refused(path, kind=SteeredClassifier)


def damaged(data):
    with pytest.raises(FileError) as caught:
        SteeredClassifier.from_bytes(data)
    return caught.value.code == "damaged"


@pytest.mark.parametrize("content", [b'"0.9"', b'"is_json"'])
def test_an_edited_file_is_noticed(model_file, content):
    """Edited with another confidence, or only packed again; the checksums of the archive fit."""
    data = model_file.read_bytes()
    members = members_of(data)
    assert content in members["schema.json"]
    members["schema.json"] = members["schema.json"].replace(content, content.replace(b"9", b"99"))
    edited = archive_of(members, compression=zipfile.ZIP_DEFLATED)
    assert damaged(edited)
    assert damaged(edited[:-2] + b"\x40\x00" + data[-64:])  # with the digest of the other file
    assert SteeredClassifier.from_bytes(with_digest(edited))


# Files that would take much memory


def declaring(data, n_bytes):
    """The file with another member, which declares a size."""
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("more.npy", b"")
        archive.getinfo("more.npy").file_size = n_bytes
    return buffer.getvalue()


def with_sparse(data, n_bytes):
    """The file with another member, an archive with a member that declares a size."""
    inner = io.BytesIO()
    np.savez_compressed(inner, data=np.zeros(9))
    return archive_of({**members_of(data), "more.npz": declaring(inner.getvalue(), n_bytes)})


def naming(data, *ids):
    """The file with objects that name the same array."""
    member = io.BytesIO()
    np.save(member, np.zeros(9))
    array = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    array |= {"type": "numpy", "file": "1.npy"}
    arrays = [array if id_ is None else array | {"__id__": id_} for id_ in ids]
    several = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}

    def add(schema):
        schema["content"]["content"]["certificate_"] = {**several, "content": arrays}

    return with_schema(archive_of({**members_of(data), "1.npy": member.getvalue()}), add)


def twice(data):
    """The file with two members of the same name."""
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="schema"):
        archive.writestr("schema.json", archive.read("schema.json"))
    return buffer.getvalue()


LARGE = {
    "a large member": lambda data: declaring(data, 1 << 40),
    "a large array in a member": lambda data: with_sparse(data, 1 << 40),
    "a large schema": lambda data: archive_of(
        {**members_of(data), "schema.json": members_of(data)["schema.json"] + b" " * 20_000_000},
        compression=zipfile.ZIP_DEFLATED,
    ),
    "another compression": lambda data: archive_of(members_of(data), compression=zipfile.ZIP_BZIP2),
    "an array of many objects": lambda data: naming(data, 1, 2),
    "an array of objects without an id": lambda data: naming(data, None, None),
    "an array of objects with an id of zero": lambda data: naming(data, 0, 0),
    "two members of one name": twice,
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_file_that_would_take_much_memory_is_refused(model_file, kind):
    assert damaged(with_digest(LARGE[kind](model_file.read_bytes())))


def test_objects_with_one_id_are_one_object(model_file):
    loaded = SteeredClassifier.from_bytes(naming(model_file.read_bytes(), 1, 1))
    assert loaded.certificate_[0] is loaded.certificate_[1]


def test_a_model_that_can_be_compressed_well_can_be_saved_and_loaded(model_file):
    model = SteeredClassifier.load(model_file)
    model.note = "a" * 20_000_000
    assert SteeredClassifier.from_bytes(model.to_bytes()).note == model.note


def test_an_archive_of_something_else(tmp_path):
    path = tmp_path / "letters.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note.txt", "text")
    refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    refused(path)


def test_a_file_that_holds_something_else(dialog, model_file, tmp_path):
    path = tmp_path / "other.skops"
    skops.io.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), path)
    refused(path, "Pipeline", "Dialog")
    refused(path, "Pipeline", "SteeredClassifier", kind=SteeredClassifier)
    refused(model_file, "SteeredClassifier", "Dialog")
    dialog.save(path)
    refused(path, "Dialog", "SteeredClassifier", kind=SteeredClassifier)


class Stranger(ClassifierMixin, BaseEstimator):
    """A model of the user's own, which notices when it is built from a file."""

    built: list = []  # noqa: RUF012 - what tests look at

    def __setstate__(self, state):
        Stranger.built.append(state)
        self.__dict__.update(state)

    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)


STRANGER = f"{Stranger.__module__}.{Stranger.__qualname__}"


def test_types_that_are_not_known_are_refused_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(Stranger, "built", [])
    dialog = Dialog(Stranger().fit(X[:150], Y[:150]), X[150:], Y[150:])
    path = tmp_path / "own.skops"
    dialog.save(path)
    refused(path, STRANGER, "trusted")
    refused(path, STRANGER, trusted=["tests.Other"])
    assert not Stranger.built
    loaded = Dialog.load(path, trusted=[STRANGER])
    assert Stranger.built
    assert loaded.confusion == dialog.confusion


@pytest.mark.parametrize("function", [eval, os.system, exec, pickle.loads], ids=str)
def test_functions_are_refused(tmp_path, function):
    dialog = Dialog(GaussianNB().fit(X[:150], Y[:150]), X[150:], Y[150:])
    dialog._data.committee.members[0].trap = function
    path = tmp_path / "trap.skops"
    dialog.save(path)
    refused(path, function.__name__, "trusted")


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (Path(self.trace),))


def test_a_pickle_under_another_name_is_refused_and_not_executed(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "pickle.skops"
    content = pickle.dumps(Bomb(trace))
    pickle.loads(content)  # noqa: S301 - to see that it does leave a trace
    assert trace.exists()
    trace.unlink()
    path.write_bytes(content)
    refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", content)
    refused(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("margrave.steer.Dialog", True),
        ("margrave.steer._dialog.Dialog", True),
        ("margrave.confusion._preference.Preference", True),
        ("sklearn.tree._tree.Tree", True),
        ("fractions.Fraction", True),
        ("margrave.steer._files.save_object", False),  # a function
        ("margrave.steer._files.zipfile", False),  # a module
        ("margrave.steer._files.nothing", False),
        ("margrave.nowhere.Dialog", False),
        ("margravel.Dialog", False),
        ("builtins.eval", False),
        ("margrave.steer._files.Path", False),  # a type, but not one of Margrave's
        ("margrave.steer._ways.Pipeline", False),
    ],
)
def test_which_types_are_known(name, known):
    assert _is_known(name) == known


@pytest.mark.core
def test_skops_loads_a_file_with_the_types_that_margrave_trusts(model_file):
    types = trusted_types(model_file)
    assert all(one.startswith("margrave.") or _is_known(one) for one in types)
    loaded = skops.io.load(model_file, trusted=types)
    np.testing.assert_array_equal(loaded.predict(X), SteeredClassifier.load(model_file).predict(X))
    # As MLflow writes the model: without Margrave.
    written = skops.io.dumps(SteeredClassifier.load(model_file))
    assert set(skops.io.get_untrusted_types(data=written)) <= set(types)


@pytest.mark.core
def test_types_that_margrave_does_not_know_are_never_listed(tmp_path):
    dialog = Dialog(Stranger().fit(X[:150], Y[:150]), X[150:], Y[150:])
    dialog._data.committee.members[0].trap = os.system
    dialog.save(tmp_path / "own.skops")
    types = trusted_types(tmp_path / "own.skops")
    assert types
    assert all(map(_is_known, types))
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException):
        skops.io.load(tmp_path / "own.skops", trusted=types)


@pytest.mark.core
def test_types_of_other_files_are_not_listed(model_file, tmp_path):
    damaged = tmp_path / "damaged.skops"
    damaged.write_bytes(model_file.read_bytes()[:-9] + b"123456789")
    for path, code in [(damaged, "damaged"), (tmp_path / "none.skops", "missing")]:
        with pytest.raises(FileError) as caught:
            trusted_types(path)
        assert caught.value.code == code


def test_without_skops_the_error_names_the_extra_to_install(dialog, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    for action in (dialog.save, Dialog.load):
        with pytest.raises(ImportError, match=r"\[app\]"):
            action(tmp_path / "file.skops")
    assert not names_in(tmp_path)


@pytest.mark.full
def test_files_do_not_import_what_scikit_learn_only_wraps():
    code = (
        "import sys; from margrave.steer._files import _skops; _skops(); "
        "print('torch' in sys.modules, None in sys.modules.values())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout == "False False\n"


class Modules(dict):
    """The modules of the process, as another thread may be reading them."""

    def update(self, *_more):
        raise AssertionError("modules were changed")


def test_a_file_is_read_without_changes_that_other_threads_could_see(model_file, monkeypatch):
    SteeredClassifier.load(model_file)  # the first imports skops
    monkeypatch.setattr(sys, "modules", Modules(sys.modules))
    assert SteeredClassifier.load(model_file)
