"""ONNX files: they answer what the model answers, or are not written at all."""

import json
import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from tests.needs import need_package

import margrave
from margrave import catalogue, datasets
from margrave.committee import FittedMembers
from margrave.export import ExportError, can_export, onnx_inputs
from margrave.export._graph import Graph, session
from margrave.export._preprocessing import quantiles
from margrave.fuse._log_odds import fit_log_odds
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableLogistic,
)
from margrave.steer import (
    Dialog,
    Offsets,
    Scorer,
    SingleMember,
    SteeredClassifier,
    Threshold,
    make_model,
)
from margrave.steer._default_committee import default_committee
from margrave.table import TableEncoder

RANDOM = np.random.default_rng(6)
N = 300
CODES = RANDOM.integers(0, 2, N)
Y = np.array(["ham", "spam"])[CODES]
X = RANDOM.normal(size=(N, 3)) + CODES[:, None] * [1.5, 1.0, 0.0]
CODES3 = RANDOM.integers(0, 3, N)
Y3 = np.array(["ash", "birch", "cedar"])[CODES3]
X3 = RANDOM.normal(size=(N, 3)) + 1.5 * np.eye(3)[CODES3]
NEW = RANDOM.normal(size=(500, 3)) * 2 + 0.5
PAIR = [("logistic", TunableLogistic()), ("svm", SVC())]


def answers(made, samples):
    """What a file says: label, score, rejected."""
    runs = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    assert [one.name for one in runs.get_outputs()] == ["label", "score", "rejected"]
    return runs.run(None, onnx_inputs(runs, samples))


def check_equal(model, samples, tol=1e-9, made=None):
    """All labels are equal, and scores to the digits they have; returns the share rejected."""
    assert can_export(model)
    label, score, rejected = answers(made or model.to_onnx(), samples)
    said = model.predict(samples)
    assert label.shape == said.shape
    assert (label != said).sum() == 0
    wanted = model.decision_function(samples)
    np.testing.assert_allclose(score, wanted, rtol=tol, atol=tol * np.abs(wanted).max())
    np.testing.assert_array_equal(rejected, said == model.reject_label_)
    return rejected.mean()


def made(model, decision=None, **params):
    """A trained classifier, steered by hand."""
    committee = FittedMembers(["one"], [model], model.classes_)
    scorer = Scorer(committee, SingleMember(bool(committee.gives_probabilities[0])), 9)
    k = len(model.classes_)
    usual = Threshold(0.1, 0.1) if k == 2 else Offsets(np.linspace(0, 0.2, k))
    return make_model(scorer, decision or usual, **params)


# The default committee


def table_of(name, gaps, **replaced):
    """A bundled table with gaps, as a user's file would have it."""
    data = datasets.load(name, as_frame=True)
    random, frame = np.random.default_rng(0), data.data.copy()
    for column in gaps:
        frame[column] = frame[column].astype(object)
        frame.loc[random.random(len(frame)) < 0.1, column] = None
        if pd.api.types.is_numeric_dtype(data.data[column]):
            frame[column] = frame[column].astype(float)
    return frame.rename(columns=replaced), np.asarray(data.target)


def credit_table():
    """Numbers and categories with gaps; two columns are named like outputs."""
    frame, y = table_of(
        "german", ["age", "purpose", "credit_amount"], duration="score", housing="label"
    )
    return frame[["score", "label", "age", "purpose", "credit_amount", "checking_status"]], y


@pytest.fixture(scope="module")
def credit():
    """The default committee on that table."""
    part, y = credit_table()
    model = SteeredClassifier(
        preference="fp <= 40%, rejected <= 40%",
        confidence=0.8,
        random_state=0,
        strategies=["reject"],
    ).fit(part[:400], y[:400])
    return model, part[400:]


@pytest.mark.full
def test_the_default_committee_on_a_table(credit):
    model, new = credit
    assert {"number", "category"} == set(model.scorer_.committee.encoder.kinds_.values())
    assert len(model.scorer_.committee.members) == 6
    assert 0 < check_equal(model, new) < 1


def test_unseen_missing_and_odd_cells(credit):
    model, new = credit
    odd = new.head(40).copy()
    odd["purpose"] = ["a new one", "", None, "missing", *odd["purpose"][4:]]
    odd["checking_status"] = ["", "unheard", *odd["checking_status"][2:]]
    odd["age"] = [np.nan, np.inf, -np.inf, 1e308, -1e200, 0.0, *odd["age"][6:]]
    odd["score"] = np.resize([np.nan, 1e9], 40)
    check_equal(model, odd)
    check_equal(model, odd.head(1))


def test_names_of_outputs_are_left_to_outputs():
    dialog = Dialog.from_data(*credit_table(), committee=["logistic"], certify=None, random_state=0)
    stored = {one["column"]: one for one in columns_of(dialog.model.to_onnx())}
    assert stored["score"] == {"column": "score", "input": "score_", "kind": "number"}
    assert stored["label"] == {"column": "label", "input": "label_", "kind": "category"}
    assert stored["age"] == {"column": "age", "input": "age", "kind": "number"}


@pytest.mark.core
@pytest.mark.parametrize("committee", [["logistic"], ["logistic", TunableLogistic()]])
def test_columns_of_all_types(committee):
    rng = np.random.default_rng(0)
    y = np.repeat(["healthy", "ill"], 200)
    ill = (y == "ill").astype(int)
    whole, n = rng.integers(20, 60, 400) + 20 * ill, len(y)
    table = pd.DataFrame(
        {
            "int64": whole,
            "int8": rng.integers(0, 5, n).astype(np.int8),
            "Int64": pd.array([None if i % 9 == 0 else int(whole[i]) for i in range(n)], "Int64"),
            "bool": rng.random(n) < 0.3 + 0.4 * ill,
            "boolean": pd.array([None if i % 7 == 0 else i % 2 == 0 for i in range(n)], "boolean"),
            "float32": (rng.normal(size=n) + ill).astype(np.float32),
            "score": rng.integers(0, 3, n),  # the name of an output
        }
    )
    if len(committee) == 1:  # a model of the user reads numbers only
        grades = rng.choice(["A", " B", None], n)
        table["object"], table["category"] = grades, pd.Categorical(rng.integers(1, 4, n))
        table["string"] = pd.array(grades, "string")
    else:
        table = table.astype({"Int64": float, "boolean": float}).fillna(0)
    dialog = Dialog.from_data(table, y, committee=committee, random_state=0)
    check_equal(dialog.model, table[::-1])


def columns_of(made):
    return json.loads(facts_of(made)["columns"])


def facts_of(made):
    return {one.key: one.value for one in onnx.load_from_string(made).metadata_props}


def test_what_a_file_tells_of_itself(credit):
    model, _ = credit
    made = model.to_onnx()
    loaded = onnx.load_from_string(made)
    onnx.checker.check_model(loaded)
    facts = facts_of(made)
    assert (loaded.producer_name, loaded.producer_version) == ("margrave", margrave.__version__)
    assert facts["margrave_version"] == margrave.__version__
    assert facts["certificate"] == str(model.certificate_)
    assert facts["preference"] == model.certificate_.preference == "fp <= 40%, rejected <= 40%"
    assert json.loads(facts["classes"]) == model.classes_.tolist()
    assert json.loads(facts["reject_label"]) == model.reject_label_
    assert json.loads(facts["single_precision"]) == []


def test_a_file_is_the_same_each_time(credit, tmp_path):
    model, _ = credit
    path = tmp_path / "model.onnx"
    path.write_text("what was there")
    model.export_onnx(path)
    assert path.read_bytes() == model.to_onnx()
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


def test_a_model_from_a_file_is_written_alike(tmp_path):
    model = made(LogisticRegression().fit(X, Y))
    model.save(tmp_path / "model.skops")
    assert SteeredClassifier.load(tmp_path / "model.skops").to_onnx() == model.to_onnx()


def test_the_default_committee_on_an_array_of_three_classes():
    X, y = datasets.load("iris", return_X_y=True)
    random = np.random.default_rng(0)
    rows = X + random.normal(size=X.shape)
    rows[::7, 2] = np.nan
    encoder = TableEncoder().fit(rows[::2])
    seen, (classes, codes) = encoder.transform(rows[::2]), np.unique(y, return_inverse=True)
    members = [(name, one.fit(seen, y[::2])) for name, one in default_committee(75, random_state=0)]
    committee = FittedMembers(
        [name for name, _ in members], [one for _, one in members], classes, encoder
    )
    combine = fit_log_odds(committee.raw(seen), committee.gives_probabilities, codes[::2])
    decision = Offsets(np.array([0.1, 0.0, -0.2]), doubt=0.5)
    model = make_model(Scorer(committee, combine, 9), decision)
    assert 0 < check_equal(model, rows) < 1
    assert columns_of(model.to_onnx()) == []


# Members, each alone


OWN = [
    TunableLogistic(),
    TunableLogistic(offset=[0.5, 0.0], class_cost=[1, 3]),
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    LinearSVC(),
    RidgeClassifier(),
    SGDClassifier(random_state=0),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    SVC(C=2.0),
    SVC(kernel="linear"),
    SVC(kernel="poly", degree=2, coef0=1.0),
    SVC(kernel="sigmoid", gamma=0.1),
    NuSVC(nu=0.3),
    DecisionTreeClassifier(min_samples_leaf=5),
    ExtraTreesClassifier(20, min_samples_leaf=2, random_state=0),
    RandomForestClassifier(20, random_state=0),
    HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=5),
    MartingaleBoostClassifier(n_levels=5),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(StandardScaler(with_mean=False), QuantileTransformer(n_quantiles=50), SVC()),
    make_pipeline(
        QuantileTransformer(n_quantiles=80, output_distribution="normal"), LogisticRegression()
    ),
    make_pipeline("passthrough", TableEncoder(), TunableLogistic()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
]
LEFT = [
    GaussianNB(),
    KNeighborsClassifier(15),
    MLPClassifier((5,), max_iter=20, solver="lbfgs", random_state=0),
    make_pipeline(MinMaxScaler(), TunableLogistic()),
]


def shown(model):
    return str(model).replace("\n", "").replace(" ", "")[:70]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [*OWN, *LEFT], ids=shown)
@pytest.mark.parametrize("classes", [2, 3])
def test_each_member(model, classes):
    if classes == 3 and "offset" in str(model):
        model = TunableLogistic(offset=[0.5, 0.0, -1.0])
    rows, labels = (X, Y) if classes == 2 else (X3, Y3)
    steered = SteeredClassifier(model).fit(rows, labels)
    # A probability near 0 or 1 has few digits left, and so has its logarithm.
    made = steered.to_onnx()
    check_equal(steered, rows, tol=1e-5, made=made)
    check_equal(steered, NEW, tol=1e-5, made=made)
    assert facts_of(made)["single_precision"] == "[]"


def test_numbers_on_the_thresholds_of_trees_go_the_same_way():
    forest = ExtraTreesClassifier(10, random_state=0).fit(X, CODES)
    boosted = HistGradientBoostingClassifier(max_iter=10).fit(X, CODES)
    near = np.sort(X, axis=0)[1:] / 2 + np.sort(X, axis=0)[:-1] / 2
    at = [tree.tree_.threshold[tree.tree_.feature == 0] for tree in forest.estimators_]
    at += [one.nodes["num_threshold"] for (one,) in boosted._predictors]
    rows = np.resize(np.concatenate(at), (400, 3))
    for model in (forest, boosted):
        check_equal(made(model), np.vstack([near, rows, np.nextafter(rows, 9)]), tol=1e-6)


def test_trees_know_where_missing_numbers_go():
    holes = np.where(RANDOM.random(X.shape) < 0.2, np.nan, X)
    for model in (HistGradientBoostingClassifier(max_iter=10), RandomForestClassifier(10)):
        check_equal(made(model.fit(holes, Y)), holes, tol=1e-6)


def test_a_tree_without_a_split():
    check_equal(made(DecisionTreeClassifier(min_samples_leaf=200).fit(X, Y)), NEW)
    check_equal(made(HistGradientBoostingClassifier(min_samples_leaf=200).fit(X, Y)), NEW)


def test_a_kernel_machine_is_exact_far_out():
    rows = X.copy()
    rows[:5] *= 1e6
    model = SVC(gamma=0.5).fit(rows, Y)
    check_equal(made(model), np.vstack([rows, rows + 1e-3]))


def test_quantiles_with_repeated_values_as_scikit_learn_has_them():
    rows = np.column_stack([np.round(X[:, 0]), X[:, 1] ** 3, np.where(X[:, 2] > 0, X[:, 2], 0)])
    new = np.vstack([rows, NEW, rows * 100, np.nextafter(rows, 9)])
    for distribution in ("uniform", "normal"):
        model = QuantileTransformer(n_quantiles=60, output_distribution=distribution).fit(rows)
        graph = Graph()
        made = graph.model({"out": (quantiles(graph, model, graph.matrix(3)), 11, ["n", 3])})
        (said,) = session(made.SerializeToString()).run(None, {"X": new})
        np.testing.assert_allclose(said, model.transform(new), rtol=1e-13, atol=1e-13)
    assert said.min() == pytest.approx(norm.ppf(1e-7), rel=1e-8)


def test_single_precision_is_said():
    model = SteeredClassifier(GradientBoostingClassifier(n_estimators=20)).fit(X, Y)
    check_equal(model, NEW, tol=1e-5)
    stored = facts_of(model.to_onnx())["single_precision"]
    assert json.loads(stored) == ["gradientboostingclassifier"]


def test_members_that_skl2onnx_wraps():
    inner = CalibratedClassifierCV(LinearSVC(), cv=2)
    check_equal(SteeredClassifier(inner).fit(X, Y), NEW, tol=1e-6)


def test_a_frozen_member():
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    dialog = Dialog(frozen, X, Y)
    check_equal(dialog.prefer("fn <= 10%", strategies=["move"]).model, NEW)


@pytest.mark.parametrize("model", [TunableLogistic(), SVC(kernel="poly", coef0=0.3)], ids=shown)
def test_one_column_is_not_rounded(model):
    # onnxruntime joins a number and a product into one operator, in single precision.
    line = make_pipeline(StandardScaler(), model).fit(X[:, :1] * 3 + 1, Y)
    check_equal(made(line), NEW[:, :1])


# Committees, dialogs and decisions


def test_a_committee_of_probabilities_and_decision_values():
    committee = FittedMembers(["logistic", "svm"], [one.fit(X, Y) for _, one in PAIR], np.unique(Y))
    combine = fit_log_odds(committee.raw(X), committee.gives_probabilities, CODES)
    check_equal(make_model(Scorer(committee, combine, 9), Threshold(-0.3, 0.4)), NEW)


def test_a_committee_of_three_classes_of_which_one_member_knows_two():
    knows = Y3 != "birch"
    members = [LogisticRegression().fit(X3[knows], Y3[knows]), TunableLogistic().fit(X3, Y3)]
    committee = FittedMembers(["two", "three"], members, np.unique(Y3))
    combine = fit_log_odds(committee.raw(X3), committee.gives_probabilities, CODES3)
    decision = Offsets(np.array([0.0, 0.3, -0.2]), doubt=0.4)
    assert 0 < check_equal(make_model(Scorer(committee, combine, 9), decision), NEW) < 1


def test_a_member_that_knows_one_class():
    committee = FittedMembers(
        ["one"], [DecisionTreeClassifier().fit(X, np.full(N, "ham"))], np.unique(Y)
    )
    check_equal(
        make_model(Scorer(committee, SingleMember(True), 9), Threshold(0.0, 0.0)),
        NEW,
    )


@pytest.mark.parametrize("learner", [TunableLogistic(), MartingaleBoostClassifier(n_levels=3)])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_learner_that_was_tuned(learner, classes):
    rows, labels = (X, Y) if classes == 2 else (X3, Y3)
    wanted = "fn <= 10" if classes == 2 else "errors(ash -> birch) <= 5"
    dialog = Dialog(make_pipeline(StandardScaler(), learner).fit(rows, labels), rows, labels)
    model = dialog.prefer(wanted, strategies=["retune"]).model
    check_equal(model, NEW, tol=1e-8)


@pytest.mark.parametrize(("freeze", "kind"), [(None, "constant"), (0.4, "frozen")])
@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_a_program_with_nodes_that_have_no_learner(freeze, kind, offset):
    apart = CODES[:, None] * [1.0, 1.0, 0.0]
    program = MartingaleBoostClassifier(n_levels=6, freeze=freeze).fit(X + apart, Y)
    assert {"leaf", "learner", kind} == {node.kind for node in program.program_.nodes}
    program._fitted_program = replace(program._fitted_program, offset=np.array([0.0, offset]))
    program.offset_ = np.array([0.3, 0.0])
    check_equal(made(program), np.vstack([X + apart, X, NEW]))


def test_a_guarantee_is_in_the_file():
    model = SteeredClassifier(
        PAIR, preference="fn <= 25%", confidence=0.8, random_state=0, strategies=["move"]
    ).fit(X, Y)
    check_equal(model, NEW)
    assert facts_of(model.to_onnx())["certificate"] == str(model.certificate_)


def test_nothing_guaranteed():
    facts = facts_of(made(LogisticRegression().fit(X, Y), preference="fn <= 3").to_onnx())
    assert (facts["certificate"], facts["preference"]) == ("", "fn <= 3")


@pytest.mark.parametrize(
    "decision", [Threshold(0.2, 0.2), Threshold(-0.5, 0.5), Threshold(-1e9, 1e9)]
)
def test_a_band_of_doubt(decision):
    share = check_equal(made(LogisticRegression().fit(X, Y), decision), NEW)
    assert (share > 0) == decision.rejects


def test_scores_at_a_threshold_and_their_rounding():
    line = RidgeClassifier().fit(X, Y)
    score = made(line, Threshold(0.0, 0.0)).decision_function(NEW)
    for decision in (Threshold(score[0], score[0]), Threshold(*np.sort(score[:2]))):
        model = made(line, decision)
        check_equal(model, NEW)
        for decimals in (2, 0, -1):
            coarse = Scorer(model.scorer_.committee, model.scorer_.combine, decimals)
            check_equal(make_model(coarse, decision), NEW * 30)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([3, 7], "tensor(int64)"),
        ([1.0, 2.0], "tensor(double)"),
        ([False, True], "tensor(bool)"),
        (["né", "да"], "tensor(string)"),
    ],
)
def test_labels_of_any_kind(labels, kind):
    line = LogisticRegression().fit(X, np.array(labels)[CODES])
    model = made(line)
    check_equal(model, NEW)
    assert session(model.to_onnx()).get_outputs()[0].type == kind
    doubting = made(line, Threshold(-0.5, 0.5))
    label, _, rejected = answers(doubting.to_onnx(), NEW)
    said = doubting.predict(NEW)
    wanted = said.astype(str) if labels == [False, True] else said
    np.testing.assert_array_equal(label, wanted)
    assert rejected.any()


# Columns


FRAME = pd.DataFrame(X, columns=["a", "b", ""])


def test_members_that_know_their_columns_by_name():
    members = [("all", LogisticRegression()), ("some", GaussianNB())]
    members[0][1].fit(FRAME, Y)
    members[1][1].fit(FRAME[["b", "a"]], Y)
    model = Dialog(members, FRAME, Y).prefer("fn <= 30", strategies=["move"]).model
    check_equal(model, FRAME)
    stored = [(one["column"], one["input"]) for one in columns_of(model.to_onnx())]
    assert stored == [("a", "a"), ("b", "b"), ("", "_")]


def test_a_pipeline_that_begins_with_a_table():
    frame = FRAME.assign(kind=np.resize(["x", "y", "z", None], N))
    model = SteeredClassifier(make_pipeline(TableEncoder(), LogisticRegression())).fit(frame, Y)
    check_equal(model, frame)
    assert columns_of(model.to_onnx())[-1]["kind"] == "category"


def test_rare_categories():
    kinds = np.array([f"k{i}" for i in np.minimum(RANDOM.geometric(0.08, N), 39)])
    encoder = TableEncoder(max_categories=5)
    model = make_pipeline(encoder, LogisticRegression())
    frame = pd.DataFrame({"kind": kinds, "more": np.resize(["u", "v"], N)})
    steered = SteeredClassifier(model).fit(frame, Y)
    new = pd.DataFrame({"kind": [*map("k{}".format, range(50)), ""], "more": ["u", "w", ""] * 17})
    check_equal(steered, new)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pd.date_range("2020-01-01", periods=N), "date"),
        ([f"the letter of {i} words said {i % 7} times so" for i in range(N)], "text"),
    ],
)
def test_columns_that_cannot_be_read(cells, kind, tmp_path):
    model = SteeredClassifier(make_pipeline(TableEncoder(), LogisticRegression()))
    model.fit(FRAME.assign(when=cells), Y)
    path = tmp_path / "model.onnx"
    path.write_text("what was there")
    with pytest.raises(ExportError, match=f"'when'.*{kind}"):
        model.export_onnx(path)
    assert not can_export(model)
    assert path.read_text() == "what was there"
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


def test_a_column_of_two_kinds():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.resize(["1", "2"], N)})
    text = frame.assign(b=pd.Categorical(frame["b"]))
    table = make_pipeline(TableEncoder(), LogisticRegression()).fit(text, Y)
    line = LogisticRegression().fit(frame.astype(float), Y)
    committee = FittedMembers(["table", "logistic"], [table, line], np.unique(Y))
    combine = fit_log_odds(
        np.column_stack([CODES, CODES]) - 0.5, committee.gives_probabilities, CODES
    )
    model = make_model(Scorer(committee, combine, 9), Threshold(0.0, 0.0))
    with pytest.raises(ExportError, match=r"'b'.*category.*number"):
        model.to_onnx()
    assert not can_export(model)


# What cannot be written


class Mine(ClassifierMixin, BaseEstimator):
    """A classifier that nobody knows."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Mute(Mine):
    """One that does not say how many columns it takes, and gives labels only."""

    predict_proba = property()

    def fit(self, X, y):
        super().fit(X, y)
        del self.n_features_in_
        return self


class Quiet(Mute):
    def decision_function(self, X):
        return np.zeros(len(X))


class Refusing(GaussianNB):
    """One that skl2onnx would take for what it is made from."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Mine(), ["Mine", "skl2onnx"]),
        (Mute(), ["Mute"]),
        (Quiet(), ["Quiet"]),
        (make_pipeline(StandardScaler(), Mine()), ["Pipeline", "Mine", "skl2onnx"]),
        (
            make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
            ["Pipeline", "LinearDiscriminantAnalysis"],
        ),
        (
            AdaptiveMartingaleBoostClassifier(n_levels=2),
            ["AdaptiveMartingaleBoostClassifier", "skl2onnx"],
        ),
        (
            MartingaleBoostClassifier(DecisionTreeClassifier(max_depth=2), n_levels=2),
            ["MartingaleBoostClassifier", "TunableLogistic"],
        ),
        (
            HistGradientBoostingClassifier(categorical_features=[2], max_iter=2),
            ["HistGradientBoostingClassifier", "skl2onnx"],
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_members_that_cannot_be_written(model, named):
    rows = np.column_stack([X[:, :2], np.arange(N) % 3])
    steered = made(model.fit(rows, Y))
    assert not can_export(steered)
    with pytest.raises(ExportError, match="'one'") as raised:
        steered.to_onnx()
    for one in named:
        assert one in str(raised.value)


@pytest.mark.parametrize("name", catalogue.names())
def test_whether_a_member_of_the_catalogue_can_be_written(name):
    needs = catalogue.describe(name).needs
    if needs is not None:
        need_package(name)
    steered = made(catalogue.make(name, random_state=0).fit(X, Y))
    try:
        steered.to_onnx()
    except ExportError:
        assert not can_export(steered)
    else:
        assert can_export(steered)


def test_a_graph_that_answers_otherwise_is_not_taken(monkeypatch):
    model = made(GaussianNB().fit(X, Y))
    model.to_onnx()
    monkeypatch.setattr(GaussianNB, "predict_proba", Refusing.predict_proba)
    assert not can_export(model)
    with pytest.raises(ExportError, match="GaussianNB"):
        model.to_onnx()


def test_a_member_that_has_not_seen_all_classes():
    knows = Y3 != "birch"
    committee = FittedMembers(["two"], [LinearSVC().fit(X3[knows], Y3[knows])], np.unique(Y3))
    model = make_model(Scorer(committee, SingleMember(False), 9), Offsets(np.zeros(3)))
    assert not can_export(model)
    with pytest.raises(ExportError, match=r"'two'.*LinearSVC"):
        model.to_onnx()


def test_scores_and_decisions_of_ones_own():
    line = LogisticRegression().fit(X, Y)
    with pytest.raises(ExportError, match=r"\bdecision\b.*\bstr\b"):
        made(line, decision="by heart").to_onnx()
    committee = FittedMembers(["one"], [line], line.classes_)
    with pytest.raises(ExportError, match=type(np.sum).__name__):
        make_model(Scorer(committee, np.sum, 9), Threshold(0.0, 0.0)).to_onnx()


def test_a_model_must_be_trained():
    with pytest.raises(NotFittedError):
        SteeredClassifier().to_onnx()
    with pytest.raises(NotFittedError):
        can_export(SteeredClassifier())


@pytest.mark.parametrize("name", ["onnx", "skl2onnx", "onnxruntime"])
def test_packages_that_are_not_installed(name, monkeypatch):
    model = made(GaussianNB().fit(X, Y))
    for loaded in [one for one in sys.modules if one.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    assert not can_export(model)
    with pytest.raises(ImportError, match=rf"\b{name}\b.*\[onnx\]"):
        model.to_onnx()


def test_the_columns_of_a_model_are_those_of_the_dialog():
    """Not those of its first member: others may look at more."""
    random = np.random.default_rng(0)

    def drawn(n):
        X = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "unused"])
        return X, (X["a"] + X["b"] + 0.3 * random.normal(size=n) > 0).to_numpy().astype(int)

    X, y = drawn(800)
    members = [(name, LogisticRegression().fit(X[[name]], y)) for name in ("a", "b")]
    dialog = Dialog(members, *drawn(800))
    dialog.prefer("fp <= 10%")
    model = dialog.accept(*drawn(800))
    assert model.feature_names_in_.tolist() == ["a", "b", "unused"]
    new = drawn(500)
    assert model.confusion(*new).accuracy > 0.8
    stored = session(model.to_onnx()).run(
        None, {name: new[0][[name]].to_numpy(float) for name in ("a", "b")}
    )
    assert (stored[0] == model.predict(new[0])).all()
