"""Model files that were altered: refused or used, but never the end of the process."""

import copy
import io
import json
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from margrave.steer import Dialog, FileError, SteeredClassifier
from margrave.steer._files import with_digest

ROOT = Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(4)
N, COLUMNS = 240, ["a", "b", "c"]
CODES = RANDOM.integers(0, 2, N)
X = RANDOM.normal(size=(N, 3)).astype(np.float32) + CODES[:, None] * [1.5, 1.0, 0.0]
Y = np.array(["ham", "spam"])[CODES]
MEMBERS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(3, max_depth=3, random_state=np.random.RandomState(0)),
    "extra": ExtraTreesClassifier(3, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    "kd": KNeighborsClassifier(algorithm="kd_tree", leaf_size=5),
    "ball": KNeighborsClassifier(algorithm="ball_tree", leaf_size=5),
    "brute": KNeighborsClassifier(algorithm="brute"),
    "svm": SVC(),
    "logistic": LogisticRegression(),
}


@pytest.fixture(scope="module")
def good():
    """A certified model with members of every kind that compiled code predicts with."""
    table = pd.DataFrame(X, columns=COLUMNS)
    dialog = Dialog.from_data(table, Y, committee=list(MEMBERS.items()), random_state=0)
    dialog.prefer("fn <= 40%", strategies=["move"])
    return dialog.accept(confidence=0.8)


def member_of(model, name):
    committee = model.scorer_.committee
    return dict(zip(committee.names, committee.members, strict=True))[name]


# Hostile content, by hand


def altered_nodes(field, value, node=0):
    """Alter a field of a node of a tree."""

    def alter(model, name="tree"):
        one = member_of(model, name)
        one = np.ravel(one.estimators_)[0] if hasattr(one, "estimators_") else one
        make, arguments, state = one.tree_.__reduce__()
        state["nodes"] = state["nodes"].copy()
        state["nodes"][field][node] = value
        one.tree_ = make(*arguments)
        one.tree_.__setstate__(state)

    return alter


def altered_state(**changes):
    def alter(model):
        one = member_of(model, "tree")
        make, arguments, state = one.tree_.__reduce__()
        one.tree_ = make(*arguments)
        one.tree_.__setstate__(state | changes)

    return alter


def empty_tree(model):
    one = member_of(model, "tree")
    make, arguments, _ = one.tree_.__reduce__()
    one.tree_ = make(*arguments)


def altered_histogram(field, value, node=0):
    def alter(model):
        nodes = member_of(model, "histogram")._predictors[0][0].nodes
        nodes[field][node] = value

    return alter


def altered_attribute(member, name, change):
    def alter(model):
        one = member_of(model, member)
        setattr(one, name, change(copy.deepcopy(getattr(one, name))))

    return alter


def altered_neighbours(member, part, value):
    """Alter an array in the state of a tree of neighbours."""

    def alter(model):
        one = member_of(model, member)._tree
        state = list(one.__getstate__())
        array = np.array(state[part])
        array.reshape(-1)[:] = value
        state[part] = array
        one.__setstate__(tuple(state))

    return alter


def altered_generator(model):
    state = member_of(model, "forest").random_state.get_state(legacy=False)
    state["state"]["pos"] = 10**6
    member_of(model, "forest").random_state.set_state(state)


def sparse_support(model):
    svm = member_of(model, "svm")
    svm._sparse = True
    svm.support_vectors_ = scipy.sparse.csr_array(svm.support_vectors_)
    svm._dual_coef_ = scipy.sparse.csr_array(svm._dual_coef_)
    svm.support_vectors_.indices[:] = 2**30


def altered_decimals(model):
    object.__setattr__(model.scorer_, "decimals", 2**40)


BIG = 2**30
HOSTILE = {
    "child outside": altered_nodes("left_child", BIG),
    "right child outside": altered_nodes("right_child", BIG),
    "child before": altered_nodes("left_child", -7),
    "child is its parent": altered_nodes("left_child", 0),
    "children are their parent": altered_nodes("right_child", 0),
    "grandchild is the root": altered_nodes("left_child", 0, node=1),
    "one child is missing": altered_nodes("right_child", -1),
    "column outside": altered_nodes("feature", BIG),
    "column just outside": altered_nodes("feature", 3),
    "column before": altered_nodes("feature", -1),
    "fewer nodes than there are": altered_state(node_count=1),
    "no nodes": empty_tree,
    "flat tree": altered_state(max_depth=0),
    "negative depth": altered_state(max_depth=-5),
    "forest's column": lambda model: altered_nodes("feature", BIG)(model, "forest"),
    "forest with fewer columns": altered_attribute("forest", "n_features_in_", lambda _: 1),
    "extra trees' child": lambda model: altered_nodes("left_child", BIG)(model, "extra"),
    "boosting's child": lambda model: altered_nodes("left_child", BIG)(model, "boosting"),
    "boosting's columns": altered_attribute(
        "boosting", "estimators_", lambda trees: np.repeat(trees, 9, axis=1)
    ),
    "histogram's left child": altered_histogram("left", BIG),
    "histogram's right child": altered_histogram("right", BIG),
    "histogram's child is its parent": altered_histogram("left", 0),
    "histogram's column": altered_histogram("feature_idx", BIG),
    "histogram's negative column": altered_histogram("feature_idx", -BIG),
    "histogram's category": altered_histogram("is_categorical", 1),
    "support counts": altered_attribute("svm", "_n_support", lambda n: n * 0 + [BIG, -BIG + 1]),
    "fewer coefficients": altered_attribute("svm", "_dual_coef_", lambda c: c[:, :2].copy()),
    "fewer support vectors": altered_attribute("svm", "support_vectors_", lambda v: v[:2].copy()),
    "narrow support vectors": altered_attribute(
        "svm", "support_vectors_", lambda v: v[:, :1].copy()
    ),
    "no intercept": altered_attribute("svm", "_intercept_", lambda one: one[:0]),
    "support indices": altered_attribute("svm", "support_", lambda s: s + np.int32(BIG)),
    "more classes": altered_attribute(
        "svm", "_n_support", lambda n: np.append(n, np.zeros(50, dtype=np.int32))
    ),
    "sparse support vectors": sparse_support,
    "neighbours' labels": altered_attribute("brute", "_y", lambda y: y + BIG),
    "fewer labels": altered_attribute("brute", "_y", lambda y: y[:2].copy()),
    "random numbers": altered_generator,
    "decimals without end": altered_decimals,
}
ALTERED = 25
HARMLESS = {
    # Built again from the samples:
    "kd tree's samples": altered_neighbours("kd", 1, BIG),
    "kd tree's nodes": altered_neighbours("kd", 2, (BIG, 2 * BIG, 0, 0.0)),
    "ball tree's samples": altered_neighbours("ball", 1, BIG),
    "ball tree's nodes": altered_neighbours("ball", 2, (BIG, 2 * BIG, 0, 0.0)),
    # Read for a categorical column only:
    "histogram's bitset": altered_histogram("bitset_idx", BIG),
}


# Hostile content, anywhere in the file


def read_parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return with_digest(buffer.getvalue())


# A plain value in the schema; one with an id that an earlier value has would be that value.
PLAIN = rb'"content": "(?:[^"\\]|\\.)*", "is_json": true, "__id__": \d+'


def plain(value):
    return f'"content": {json.dumps(json.dumps(value))}, "is_json": true'.encode()


def with_more_nodes(data):
    parts = read_parts(data)
    count = rb'("node_count": {[^{}]*)' + PLAIN
    parts["schema.json"] = re.sub(count, rb"\1" + plain(10**6), parts["schema.json"])
    return write_parts(parts)


def altered_at_random(data, chance):
    """Alter a number of an array, the length of an array, or a value of the schema."""
    parts = read_parts(data)
    if chance.random() < 0.6:
        name = chance.choice([name for name in parts if name.endswith(".npy")])
        array = np.load(io.BytesIO(parts[name])).copy()
        if array.ndim and chance.random() < 0.3:
            array = array[: len(array) // 2]
        elif array.size:
            flat = array.reshape(-1)
            field = flat[chance.choice(array.dtype.names)] if array.dtype.names else flat
            value = chance.choice([-1, -7, 0, 1, 3, 1000, 2**31 - 1])
            field[chance.randrange(len(field))] = np.array(value).astype(field.dtype)
        buffer = io.BytesIO()
        np.save(buffer, array)
        parts[name] = buffer.getvalue()
    else:
        old = chance.choice(re.findall(PLAIN, parts["schema.json"]))
        new = plain(chance.choice([-1, 0, 1, 3, 2**40, None, "x", [], 0.5]))
        parts["schema.json"] = parts["schema.json"].replace(old, new, 1)
    return write_parts(parts)


@pytest.fixture(scope="module")
def outcomes(good, tmp_path_factory):
    """What each file led to; a file that ended the process has none, nor those after it."""
    folder = tmp_path_factory.mktemp("hostile")
    others = pd.DataFrame(X + 1e-3, columns=COLUMNS)  # not the rows that the model was built from
    others.assign(y=Y).to_csv(folder / "table.csv", index=False)
    for name, alter in {**HOSTILE, **HARMLESS}.items():
        model = copy.deepcopy(good)
        alter(model)
        (folder / f"{name}.skops").write_bytes(model.to_bytes())
    data, chance = good.to_bytes(), random.Random(7)  # noqa: S311
    (folder / "altered node count.skops").write_bytes(with_more_nodes(data))
    for number in range(ALTERED):
        (folder / f"altered {number}.skops").write_bytes(altered_at_random(data, chance))
    command = [sys.executable, "-m", "tests.steer.hostile", str(folder)]
    try:
        ran = subprocess.run(  # noqa: S603
            command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        printed, ended = ran.stdout, f"ended with {ran.returncode}: {ran.stderr[-2000:]}"
    except subprocess.TimeoutExpired as error:
        printed, ended = (error.stdout or b"").decode(), "did not end"
    found = dict(line.split(": ", 1) for line in printed.splitlines())
    found = {name: outcome or ended for name, outcome in found.items()}
    return found, [path.stem for path in folder.glob("*.skops")]


def test_the_members_are_loaded_if_nothing_is_altered(good):
    loaded = SteeredClassifier.from_bytes(good.to_bytes())
    table = pd.DataFrame(X, columns=COLUMNS)
    np.testing.assert_array_equal(loaded.predict(table), good.predict(table))
    np.testing.assert_allclose(loaded.decision_function(table), good.decision_function(table))


@pytest.mark.parametrize("name", HOSTILE)
def test_what_compiled_code_would_follow_is_refused(good, name):
    model = copy.deepcopy(good)
    HOSTILE[name](model)
    with pytest.raises(FileError) as caught:
        SteeredClassifier.from_bytes(model.to_bytes())
    assert caught.value.code == "damaged"


@pytest.mark.full
def test_no_file_ends_the_process(outcomes):
    found, names = outcomes
    assert len(names) == len(HOSTILE) + len(HARMLESS) + ALTERED + 1
    expected = dict.fromkeys(HOSTILE, "refused damaged") | dict.fromkeys(HARMLESS, "used 0 0 0")
    for name in names:
        outcome = found.get(name, "the process ended before")
        assert re.fullmatch(expected.get(name, r"refused \w+|used( [024]){3}"), outcome), name


@pytest.mark.parametrize("kind", ["margrave.studio.store.Store", "margrave.scale.Draw"])
def test_classes_that_no_model_has_are_not_built(good, kind):
    module, _, name = kind.rpartition(".")
    none = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [],
    }
    built = {"__class__": name, "__module__": module, "__loader__": "ConstructorFromReduceNode"}
    parts = read_parts(good.to_bytes())
    schema = json.loads(parts["schema.json"])
    schema["content"]["content"]["certificate_"] = built | {"content": none}
    parts["schema.json"] = json.dumps(schema)
    with pytest.raises(FileError, match=re.escape(kind)) as caught:
        SteeredClassifier.from_bytes(write_parts(parts))
    assert caught.value.code == "untrusted"
