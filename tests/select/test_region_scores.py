"""Selection by region: who is in charge where, on samples that it was not learned from."""

import itertools
import re
from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from tests.classifiers import Scored

from margrave.confusion import Preference, PreferenceError
from margrave.export import ExportError
from margrave.select._region_scores import (
    _EVERYWHERE,
    Regions,
    RegionScores,
    _fit_scale_and_trust,
    can_split,
    fit_region_scores,
    significantly_better,
)
from margrave.steer import Dialog, SteeredClassifier
from margrave.steer._scorer import MeanScore, find_regions
from margrave.steer._strategies import Request, SelectByRegion
from margrave.table import TableEncoder

OTHERS = ["move", "reject", "reweight", "retune"]


class Constant(ClassifierMixin, BaseEstimator):
    """Always the same answer, and no more."""

    def __init__(self, answer=0):
        self.answer = answer

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[self.answer], len(X))


def of_the_slide(n, seed):
    """To the left class 1, to the right class 2; between them a line parts the two."""
    random = np.random.default_rng(seed)
    rows = random.uniform([-3, -1], [3, 1], size=(n, 2))
    height = rows[:, 1] > 0
    labels = np.where(rows[:, 0] < -1, 0, np.where(rows[:, 0] > 1, 1, height))
    # To both sides most points are where the line is wrong.
    wrong = (np.abs(rows[:, 0]) > 1) & (random.random(n) < 0.5)
    rows[wrong, 1] = np.abs(rows[wrong, 1]) * np.where(labels[wrong] == 0, 1, -1)
    return rows, labels


def line():
    """Between left and right it is right."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    return LogisticRegression().fit(rows * [0, 1], rows[:, 1] > 0)


def slide_members():
    rows, labels = of_the_slide(50, 1)
    parting = line()
    parting.classes_ = np.array([0, 1])
    always = [(f"always-{c + 1}", Constant(c).fit(rows, labels)) for c in range(2)]
    return [*always, ("logistic", parting)]


@pytest.fixture(scope="module")
def slide():
    return Dialog(slide_members(), *of_the_slide(2000, 2))


# The slide


def test_where_every_member_is_half_wrong_the_one_in_charge_is_right(slide):
    rows, labels = of_the_slide(2000, 2)
    for _, member in slide_members():
        assert 0.3 < np.mean(member.predict(rows) == labels) < 0.65
    both = "fp <= 5%, fn <= 5%"
    slide.goto(0)
    assert not slide.prefer(both, strategies=OTHERS).met
    slide.goto(0)
    reply = slide.prefer(both, strategies=["select"])
    assert (reply.met, reply.strategy) == (True, "select")
    new, true = of_the_slide(2000, 3)
    assert np.mean(reply.model.predict(new) == true) > 0.97
    slide.goto(0)
    assert slide.prefer(both).strategy == "select"


def test_the_members_in_charge_are_those_that_are_right(slide):
    candidate = next(iter(SelectByRegion().candidates(request_for("fp <= 5%", slide))))
    found = candidate.scorer.combine
    assert isinstance(found, RegionScores)
    places = np.array([[-2.0, 0.5], [-2, -0.5], [2, 0.5], [2, -0.5], [0, 0.5], [0, -0.5]])
    who = [slide.members[j] for j in found.charge[found.leaves(places)]]
    assert who[:4] == ["always-1", "always-1", "always-2", "always-2"]
    assert who[4:] == ["logistic", "logistic"] or set(who[4:]) == {"always-1", "always-2"}
    assert candidate.scorer(places)[[0, 1, 5]].max() < 0 < candidate.scorer(places)[[2, 3, 4]].min()
    assert candidate.scorer.weights.sum() == pytest.approx(1)


def request_for(text, dialog, **more):
    wanted, of = Preference(text), dialog._data
    return Request(wanted, of, of.objective(wanted), [dialog.history[0].candidate], **more)


# Judged on samples it was not learned from


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_labels_that_mean_nothing_are_not_learned(seed):
    random = np.random.default_rng(seed)
    n = 600
    labels = random.integers(0, 2, n)
    rows = np.column_stack([np.arange(n), random.normal(size=(n, 10))])
    members = [Scored(row).fit(None, labels) for row in random.normal(size=(8, n))]
    dialog = Dialog(members, rows, labels)
    scorer, held = dialog._data.region_scores
    assert roc_auc_score(labels, scorer(rows)) > 0.6, "regions do learn noise"
    assert abs(roc_auc_score(labels, held) - 0.5) < 0.07
    assert not list(SelectByRegion().candidates(request_for("fp <= 10%", dialog)))


def test_what_is_better_than_the_committee_has_a_smaller_loss_beyond_chance():
    random = np.random.default_rng(0)
    codes = random.integers(0, 2, 400)
    good = np.where(codes == 1, 2.0, -2.0) + random.normal(size=400)
    assert significantly_better(good, good / 10, codes)
    assert not significantly_better(good / 10, good, codes)
    assert not significantly_better(good, good, codes)
    assert not significantly_better(good + 0.3 * random.normal(size=400), good, codes)
    three = random.integers(0, 3, 400)
    aware = np.where(three[:, None] == np.arange(3), 2.0, -2.0)
    assert significantly_better(aware, aware / 10, three)


def test_what_is_held_out_and_what_is_new_are_on_one_scale(slide):
    new = of_the_slide(4000, 9)[0]
    for candidate in SelectByRegion().candidates(request_for("fp <= 5%", slide)):
        told = candidate.scorer(new)
        size = np.ptp(np.percentile(told, [10, 90]))
        for share in (10, 25, 75, 90):
            away = np.percentile(told, share) - np.percentile(candidate.scores, share)
            assert abs(away) < 0.15 * size


@pytest.mark.parametrize("kind", ["good", "apart", "overconfident", "same", "heavy"])
def test_corrections_have_the_least_loss(kind):
    random = np.random.default_rng(0)
    positive = random.random(300) < 0.3
    values = {
        "good": positive + random.normal(size=300),
        "apart": positive * 4.0 - 2,
        "overconfident": 20 * (positive + random.normal(size=300)),
        "same": np.ones(300),
        "heavy": positive + random.standard_t(2, size=300),
    }[kind]
    signs = np.where(values > 0.5, 1.0, -1.0)
    told, found = _fit_scale_and_trust(
        values[:, None, None], signs[:, None, None], positive[:, None]
    )

    def loss(scale, trust):
        odds = scale * values + trust * signs
        extra = ((scale - 1) ** 2 + _EVERYWHERE * trust**2 / 4) / 2
        return np.logaddexp(0, np.where(positive, -odds, odds)).sum() + extra

    (scale,), (trust,) = found
    np.testing.assert_allclose(told[:, 0, 0], scale * values + trust * signs)
    assert min(scale, trust) >= 0
    for other in random.normal(scale=0.05, size=(50, 2)):
        nearby = np.maximum(np.array([scale, trust]) + other, 0)
        assert loss(scale, trust) <= loss(*nearby) + 1e-6


def test_specialists_are_nearly_as_good_as_with_a_perfect_guide():
    """Three lines, each of its third of the space: at 2 % false alarms, what each misses."""
    random = np.random.default_rng(0)

    def drawn(n):
        X = random.normal(size=(n, 3))
        X[:, 0] = random.uniform(-3, 3, n)
        third = np.digitize(X[:, 0], [-1, 1])
        toward = np.array([[2, 0], [-1.5, 1.5], [0, -2]])[third]
        y = (X[:, 1:] * toward).sum(axis=1) - 1.2 + 0.5 * random.logistic(size=n) > 0
        return X, y.astype(int), third

    X, y, third = drawn(3000)
    lines = [LogisticRegression().fit(X[third == j], y[third == j]) for j in range(3)]
    tune, new = drawn(1500), drawn(6000)

    def missed(scores):
        threshold = np.quantile(scores[new[1] == 0], 0.98)
        return np.mean(scores[new[1] == 1] <= threshold)

    guided = missed(np.choose(new[2], [line.decision_function(new[0]) for line in lines]))
    replies = {
        strategy: Dialog(lines, *tune[:2]).prefer("fp <= 2%", strategies=[strategy])
        for strategy in ("reweight", "select")
    }
    found = {
        strategy: missed(reply.model.decision_function(new[0]))
        for strategy, reply in replies.items()
    }
    assert guided < found["select"] < guided + 0.05 < found["reweight"] - 0.1


# What it needs


def test_one_member_gives_no_candidate():
    rows, labels = of_the_slide(300, 0)
    alone = Dialog(LogisticRegression().fit(rows, labels), rows, labels)
    assert not list(SelectByRegion().candidates(request_for("fp <= 5", alone)))


def test_samples_that_are_not_numbers_give_no_candidate():
    rows, labels = of_the_slide(300, 0)
    frame = pd.DataFrame({"x": rows[:, 0], "side": np.where(rows[:, 0] > 0, "right", "left")})
    members = [
        (f"c{c}", make_pipeline(TableEncoder(), LogisticRegression(C=c)).fit(frame, labels))
        for c in (0.1, 1)
    ]
    dialog = Dialog(members, frame, labels)
    assert not list(SelectByRegion().candidates(request_for("fp <= 50", dialog)))
    assert dialog.prefer("fp <= 50").strategy != "select"


@pytest.mark.parametrize(
    ("X", "can"),
    [
        (np.zeros((3, 2)), True),
        ([[1, 2], [3, 4]], True),
        (csr_matrix(np.eye(3)), True),
        (pd.DataFrame({"a": [1, 2], "b": [0.5, 1.0]}), True),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), False),
        (np.array([[np.nan, 1.0]]), False),
        (np.array([[1e300, 1.0]]), False),
        (csr_matrix([[np.inf, 1.0]]), False),
        (["a text", "another"], False),
        (np.zeros((3, 2, 2)), False),
    ],
)
def test_what_can_be_parted(X, can):
    assert can_split(X) == can


def test_too_few_samples_to_part_give_no_candidate():
    rows, labels = of_the_slide(50, 0)
    dialog = Dialog(slide_members(), rows, labels)
    assert not list(SelectByRegion().candidates(request_for("fp <= 5", dialog)))


def test_a_search_that_is_stopped_offers_nothing(slide):
    for after in range(2):
        asked = itertools.count()
        request = request_for("fp <= 5", slide, stopped=lambda a=asked, n=after: next(a) >= n)
        assert not list(SelectByRegion().candidates(request))
    slide.goto(0)
    reply = slide.prefer("fp <= 5%", strategies=["move", "select"], stop=lambda: True)
    assert (reply.strategy, reply.cancelled) == ("move", True)


def test_regions_are_the_same_for_every_kind_of_samples():
    rows, labels = of_the_slide(500, 0)
    raw = np.column_stack([rows[:, 1], -rows[:, 1]])
    kinds = [rows, rows.tolist(), csr_matrix(rows), pd.DataFrame(rows, columns=["x", "y"])]
    found = [fit_region_scores(raw, np.zeros(2, bool), labels, 2, X) for X in kinds]
    assert found[0].leaves.n > 1
    for one, X in zip(found, kinds, strict=True):
        np.testing.assert_allclose(one(raw, X), found[0](raw, rows), rtol=1e-9)
    turned = kinds[3][["y", "x"]].assign(more="text")
    np.testing.assert_allclose(found[3](raw, turned), found[0](raw, rows), rtol=1e-9)
    twice = pd.DataFrame(rows, columns=["x", "x"])
    assert fit_region_scores(raw, np.zeros(2, bool), labels, 2, twice).leaves.columns[0] in (0, 1)


def test_no_region_at_all_is_one():
    nowhere = np.zeros(1)
    leaves = Regions([], np.array([-2]), nowhere, nowhere.astype(int), nowhere.astype(int))
    assert leaves.n == 1
    for X in (np.zeros((3, 2)), [[0, 1]] * 3):
        np.testing.assert_array_equal(leaves(X), [0, 0, 0])


def test_regions_are_found_once_for_all_requests(slide):
    one, other = (next(iter(SelectByRegion().candidates(request_for(text, slide))))
                  for text in ("fp <= 5%", "fn <= 1%"))  # fmt: skip
    assert one.scorer is other.scorer
    assert one.scores is other.scores


# More than two classes


def of_three(n, seed):
    """Each third of the plane knows two classes by another column."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, 4))
    third = np.digitize(rows[:, 0], [-0.5, 0.5])
    high = rows[np.arange(n), 1 + third] > 0
    return rows, np.array(["ash", "birch", "cedar"])[(third + high) % 3]


@pytest.fixture(scope="module")
def three():
    rows, labels = of_three(3000, 1)
    third = np.digitize(rows[:, 0], [-0.5, 0.5])
    members = []
    for c in range(3):  # who knows one third, and has heard of the rest
        use = (third == c) | (np.arange(3000) % 20 == 0)
        member = LogisticRegression(max_iter=1000).fit(rows[use, 1:], labels[use])
        members.append((f"third-{c}", Without(member).fit(rows, labels)))
    return Dialog(members, *of_three(2000, 2))


class Without(ClassifierMixin, BaseEstimator):
    """A trained classifier that does not look at the first column."""

    def __init__(self, model=None):
        self.model = model

    def fit(self, X, y):
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(np.asarray(X)[:, 1:])

    def predict(self, X):
        return self.model.predict(np.asarray(X)[:, 1:])


def test_more_than_two_classes(three):
    wants = "recall(ash) >= 85%, recall(birch) >= 85%, recall(cedar) >= 85%"
    three.goto(0)
    assert not three.prefer(wants, strategies=OTHERS).met
    three.goto(0)
    reply = three.prefer(wants, strategies=["select"])
    assert reply.met
    rows, labels = of_three(2000, 3)
    new = reply.model.confusion(rows, labels)
    assert new.counts.diagonal().sum() / new.n > 0.85
    proba = reply.model.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_class_that_a_member_has_not_seen():
    rows, labels = of_three(400, 1)
    codes = np.unique(labels, return_inverse=True)[1]
    raw = np.random.default_rng(0).normal(size=(400, 2, 3))
    raw[:, 0, 1] = np.nan
    found = fit_region_scores(raw, np.zeros(2, bool), codes, 3, rows)
    assert np.isfinite(found(raw, rows)).all()


# Kept, shown and written


def check_equal(model, samples):
    """A file says what the model says."""
    runs = onnxruntime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    names = [one.name for one in runs.get_inputs()]
    by_name = {name: np.asarray(samples[name], float)[:, None] for name in names if name != "X"}
    label, score, rejected = runs.run(None, by_name or {"X": samples})
    np.testing.assert_array_equal(label, model.predict(samples))
    np.testing.assert_allclose(score, model.decision_function(samples), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(rejected, label == model.reject_label_)


def options_of(dialog, text="fp <= 5%"):
    return list(SelectByRegion().candidates(request_for(text, dialog)))


@pytest.fixture(scope="module")
def thirds():
    """Lines that were each trained on one third of the plane."""
    random = np.random.default_rng(7)

    def drawn(n):
        rows = random.normal(size=(n, 3))
        third = np.digitize(rows[:, 0], [-0.5, 0.5])
        return rows, ((rows[:, 1] * (third - 1) + rows[:, 2] * (third == 1)) > 0).astype(int)

    rows, labels = drawn(1500)
    third = np.digitize(rows[:, 0], [-0.5, 0.5])
    members = [LogisticRegression().fit(rows[third == c], labels[third == c]) for c in range(3)]
    return members, drawn(1500), drawn(1500)


@pytest.fixture(scope="module")
def parted(thirds):
    members, tune, _ = thirds
    return Dialog(members, *tune)


def test_specialists_answer_where_they_were_trained(parted, thirds):
    rows, labels = thirds[2]
    region, _ = options_of(parted)
    assert roc_auc_score(labels, region.scorer(rows)) > 0.95
    assert roc_auc_score(labels, parted.history[0].candidate.scorer(rows)) < 0.8
    assert region.scorer.weights == pytest.approx([0.31, 0.38, 0.31], abs=0.1)


def test_files_hold_regions(parted, thirds, tmp_path):
    rows, labels = thirds[2]
    parted.goto(0)
    reply = parted.prefer("fp <= 5%", strategies=["select"])
    parted.save(tmp_path / "dialog.skops")
    loaded = Dialog.load(tmp_path / "dialog.skops")
    np.testing.assert_array_equal(loaded.reply.model.predict(rows), reply.model.predict(rows))
    model = parted.accept(rows[:750], labels[:750])
    model.save(tmp_path / "model.skops")
    again = SteeredClassifier.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    assert again.certificate_.strategy == "select"


def test_onnx_files_answer_alike(parted, three, thirds):
    for dialog, text, new in [
        (parted, "fp <= 5%", thirds[2][0]),
        (parted, "fp <= 2%, rejected <= 20%", thirds[2][0]),
    ]:
        for candidate in options_of(dialog, text):
            made = SteeredClassifier._from_parts(candidate.scorer, candidate.decision)
            check_equal(made, new)
    rows, labels = of_three(900, 5)
    members = [
        LogisticRegression(C=C).fit(rows[at::3] * keep, labels[at::3])
        for at, (C, keep) in enumerate([(1, [0, 1, 0, 1]), (1, [0, 0, 1, 1]), (0.01, [1, 1, 1, 1])])
    ]
    dialog = Dialog(members, *of_three(900, 6))
    for candidate in options_of(dialog, "recall(ash) >= 80%"):
        check_equal(
            SteeredClassifier._from_parts(candidate.scorer, candidate.decision), of_three(500, 7)[0]
        )


def test_onnx_files_of_tables_and_of_frames(thirds):
    _, (rows, labels), _ = thirds
    frame = pd.DataFrame(rows, columns=["where", "one", "other"])
    members = [("flat", LogisticRegression()), ("one", LogisticRegression(C=1e-3))]
    whole = Dialog.from_data(frame, labels, committee=["logistic", "qda"], certify=None)
    prefit = Dialog([(n, m.fit(frame, labels)) for n, m in members], frame, labels)
    for dialog in (whole, prefit):
        for candidate in options_of(dialog):
            check_equal(SteeredClassifier._from_parts(candidate.scorer, candidate.decision), frame)


def test_onnx_files_need_regions_and_members_to_know_columns_alike(thirds):
    members, (rows, labels), _ = thirds
    dialog = Dialog(members, rows, labels)
    candidate = options_of(dialog)[0]
    combine = candidate.scorer.combine
    named = replace(combine.leaves, columns=["a", "b", "c"])
    scorer = replace(candidate.scorer, combine=replace(combine, leaves=named))
    SteeredClassifier._from_parts(candidate.scorer, candidate.decision).to_onnx()
    with pytest.raises(ExportError):
        SteeredClassifier._from_parts(scorer, candidate.decision).to_onnx()


def test_a_card_says_who_is_in_charge(parted):
    region, mean = options_of(parted)
    assert find_regions(region.scorer.combine) is region.scorer.combine
    assert isinstance(mean.scorer.combine, MeanScore)
    assert find_regions(mean.scorer.combine) == region.scorer.combine
    assert find_regions(parted.history[0].candidate.scorer.combine) is None
    n = region.scorer.combine.leaves.n
    for candidate in (region, mean):
        card = SteeredClassifier._from_parts(candidate.scorer, candidate.decision).model_card()
        assert re.search(rf"\b{n}\b", card)
        for name, weight in zip(parted.members, candidate.scorer.weights, strict=True):
            assert re.search(rf"{name}.*\b{weight:.2f}\b", card)


def test_the_columns_of_a_model_are_those_of_the_dialog():
    """Not those of its first member: others, and the regions, may look at more."""
    random = np.random.default_rng(0)

    def drawn(n):
        X = pd.DataFrame(random.normal(size=(n, 2)), columns=["a", "b"])
        X["site"] = random.integers(0, 2, n)
        y = np.where(X["site"] == 1, X["a"], X["b"]) + 0.3 * random.normal(size=n) > 0
        return X, y.astype(int)

    X, y = drawn(800)
    members = [
        (name, LogisticRegression().fit(X.loc[at, [name]], y[at]))
        for name, at in (("a", X["site"] == 1), ("b", X["site"] == 0))
    ]
    dialog = Dialog(members, *drawn(800))
    assert dialog.prefer("fp <= 10%").strategy == "select"
    model = dialog.accept(*drawn(800))
    assert model.feature_names_in_.tolist() == ["a", "b", "site"]
    new = drawn(500)
    assert model.confusion(*new).accuracy > 0.8
    runs = onnxruntime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    told = runs.run(None, {name: new[0][[name]].to_numpy(float) for name in new[0]})
    assert (told[0] == model.predict(new[0])).all()


def test_each_reason_to_offer_nothing_has_its_own_message():
    labels, messages = np.arange(60) % 2, set()
    for n_members, X in [
        (1, np.zeros((60, 2))),  # one member
        (2, np.full((60, 2), "text", dtype=object)),  # no numbers
        (2, np.zeros((60, 2))),  # no regions
    ]:
        members = [Constant(c).fit(X, labels) for c in range(n_members)]
        with pytest.raises(PreferenceError, match=r"\bselect\b") as caught:
            Dialog(members, X, labels).prefer("fp <= 10%", strategies=["select"])
        messages.add(str(caught.value))
    assert len(messages) == 3
