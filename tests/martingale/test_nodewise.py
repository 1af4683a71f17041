"""Tuning node by node: the requests, their results, and the nodes that stay."""

import pickle
import re
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from margrave import Confusion, Preference, datasets
from margrave.confusion import PreferenceError
from margrave.martingale import (
    MartingaleBoostClassifier,
    NodeRequest,
    NotMetWarning,
    Step,
    TunableLogistic,
)

ALL_SELECT = pytest.mark.parametrize("granularity", ["all", "select"])


@cache
def grown(k=2, n_levels=3, n=140, seed=0, class_sep=0.6):
    """A fitted program and its tuning set; not to be changed."""
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=class_sep, random_state=seed,
    )  # fmt: skip
    model = MartingaleBoostClassifier(n_levels=n_levels).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2], X[::2], y[::2]


@cache
def iris():
    data = datasets.load("iris")
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target)
    model = MartingaleBoostClassifier(n_levels=4).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2]


def places(program):
    """Positions of the nodes with learners, by their votes."""
    learning = [at for at, node in enumerate(program.nodes) if node.kind == "learner"]
    return {tuple(map(int, program.nodes[at].position)): at for at in learning}


def tune_nodes(model, X, y, prediction=None, **more):
    """The requests that a callable receives, and the model that comes of its preferences."""
    requests = []

    def wants(request):
        requests.append(request)
        return prediction(request) if prediction else None

    return requests, model.tune(wants, X, y, **{"granularity": "all", **more})


def same(one, other, X):
    a, b = one.program_, other.program_
    return (
        (a.nodes, a.edges) == (b.nodes, b.edges)
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(one.predict_proba(X), other.predict_proba(X))
    )


def matrix_of(model, X, y):
    return Confusion.of(y, model.predict(X), classes=model.classes_.tolist())


# The requests


@pytest.mark.parametrize("k", [2, 3])
def test_requests_come_top_down_with_local_matrices(k):
    model, X, y, *_ = grown(k, 4)
    program = model.measured(X, y)
    there = places(program)
    requests, _ = tune_nodes(model, X, y)
    assert all(isinstance(request, NodeRequest) for request in requests)
    layers = [request.layer for request in requests]
    assert layers == sorted(layers)
    assert len({request.votes for request in requests}) == len(requests)
    for request in requests:
        assert request.layer == sum(request.votes)
        at = there[request.votes]
        known, local = model.learners_[at].classes_.tolist(), program.counts[at]
        assert set(known) <= set(request.confusion.classes)
        advantages = dict(zip(request.confusion.classes, request.advantages, strict=True))
        for true in known:
            assert [request.confusion[true, c] for c in known] == local[true, known].tolist()
            recall = local[true, true] / local[true].sum()
            assert advantages[true] == pytest.approx(recall - 0.5)
    # Nodes without tuning samples of all their classes get no request.
    with_samples = {
        votes
        for votes, at in there.items()
        if program.sizes[at][model.learners_[at].classes_].all()
    }
    assert {request.votes for request in requests} == with_samples
    assert len(with_samples) > 3


def test_a_request_has_the_samples_that_tuned_nodes_send():
    model, X, y, *_ = grown()
    first, other = tune_nodes(model, X, y, lambda one: "fp <= 2" if one.layer == 0 else None)
    program = other.measured(X, y)
    there = places(program)
    assert first[0].confusion == model.measured(X, y).confusion(0)
    for request in first[1:]:
        assert request.confusion == program.confusion(there[request.votes])
    untuned, _ = tune_nodes(model, X, y)
    assert [one.confusion for one in first[1:]] != [one.confusion for one in untuned[1:]]


def test_the_matrix_has_the_positive_class():
    model, X, y, *_ = grown()
    requests, tuned = tune_nodes(model, X, y, positive=0)
    assert {request.confusion.positive for request in requests} == {0}
    assert tuned.tuning_.after.positive == 0


@pytest.mark.parametrize("k", [2, 3])
def test_false_positives_are_those_of_the_positive_class(k):
    model, X, y, *_ = grown(k)
    tuned = model.tune("fp <= 2", X, y, granularity="all", positive=0, max_models=1)
    by_name = model.tune("fp(0) <= 2", X, y, granularity="all", max_models=1)
    assert (0,) * k in tuned.tuning_.nodes
    program = tuned.measured(X, y)
    there = places(program)
    for votes in tuned.tuning_.nodes:
        local = program.counts[there[votes]]
        assert local[1:, 0].sum() <= 2
    np.testing.assert_array_equal(tuned.predict(X), by_name.predict(X))


def test_of_three_classes_a_node_without_the_positive_one_has_no_other():
    """Else 'fp' speaks of another class at some nodes."""
    model, X, y = iris()
    requests, tuned = tune_nodes(model, X, y, positive="setosa")
    assert {len(own.classes_) for own in tuned.learners_.values()} == {2, 3}
    assert {request.confusion.positive for request in requests} <= {"setosa", None}
    tuned = model.tune("fp <= 0", X, y, granularity="all", positive="setosa")
    there = places(tuned.program_)
    for votes in tuned.tuning_.nodes:
        assert 0 in tuned.learners_[there[votes]].classes_


def test_labels_are_those_of_the_data():
    model, X, y = iris()
    requests, _ = tune_nodes(model, X, y)
    assert requests[0].confusion.classes == ("setosa", "versicolor", "virginica")
    assert requests[0].confusion == model.measured(X, y).confusion(0)


# Select


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.1, 0.3, 0.45, 0.51])
def test_only_nodes_of_a_smaller_advantage_are_requested(threshold):
    model, X, y, *_ = grown(n_levels=4)
    everyone, _ = tune_nodes(model, X, y)
    some, _ = tune_nodes(model, X, y, granularity="select", advantage_threshold=threshold)
    weak = [one.votes for one in everyone if one.advantages.min() < threshold]
    assert [one.votes for one in some] == weak
    assert len(weak) == {-0.5: 0, 0.51: len(everyone)}.get(threshold, len(weak))


def test_the_default_threshold_is_that_of_the_paper():
    model, X, y, *_ = grown(n_levels=4, class_sep=1.2)
    everyone, _ = tune_nodes(model, X, y, advantage_threshold=0.3)
    some, _ = tune_nodes(model, X, y, granularity="select")
    weak = [one.votes for one in everyone if one.advantages.min() < 0.3]
    assert [one.votes for one in some] == weak
    assert 0 < len(weak) < len(everyone)


def test_an_advantage_that_equals_the_threshold_is_large_enough():
    model, X, y, *_ = grown()
    everyone, _ = tune_nodes(model, X, y)
    least = min(one.advantages.min() for one in everyone)
    some, _ = tune_nodes(model, X, y, granularity="select", advantage_threshold=least)
    assert some == []


def test_a_strong_node_does_not_miss_its_preference():
    model, X, y, *_ = grown(class_sep=2.5)
    assert model.measured(X, y).advantages[0].min() > 0.3
    tuned = model.tune({(0, 0): "fp <= 100"}, X, y, granularity="select")
    assert tuned.tuning_.met
    assert tuned.tuning_.nodes == {}
    assert same(model, tuned, X)


@pytest.mark.parametrize("threshold", ["0.3", None, np.nan])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    model, X, y, *_ = grown()
    with pytest.raises(ValueError, match=rf"advantage_threshold.*{re.escape(repr(threshold))}"):
        model.tune("fp <= 1", X, y, granularity="select", advantage_threshold=threshold)


# What is done


@ALL_SELECT
@pytest.mark.parametrize("k", [2, 3])
def test_none_leaves_everything_as_it_is(granularity, k):
    model, X, y, *_ = grown(k)
    for wants in (lambda request: None, {}, {(0,) * k: None}):
        tuned = model.tune(wants, X, y, granularity=granularity)
        assert same(model, tuned, X)
        result = tuned.tuning_
        assert (result.preference, result.met, result.n_models, result.nodes) == (None, True, 0, {})
        assert result.before == result.after == matrix_of(model, X, y)
        assert not result.cancelled


@pytest.mark.parametrize("votes", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_mapping_tunes_the_nodes_it_names(votes):
    model, X, y, *_ = grown()
    untuned = model.measured(X, y)
    local = untuned.confusion(places(untuned)[votes])
    wanted = f"fp <= {local.fp // 2}"
    assert local.fp > 0
    tuned = model.tune({votes: wanted}, X, y, granularity="all")
    program = tuned.measured(X, y)
    there = places(program)
    assert list(tuned.tuning_.nodes) == [votes]
    result = tuned.tuning_.nodes[votes]
    assert result.preference == Preference(wanted)
    assert result.met
    assert result.before == local
    assert result.after == program.confusion(there[votes])
    assert tuned.tuning_.before == matrix_of(model, X, y)
    assert tuned.tuning_.after == matrix_of(tuned, X, y)
    assert tuned.tuning_.n_models == result.n_models > 0
    # Nodes that it sends nothing to are trained as before.
    was = places(model.program_)
    for other in there.keys() & was.keys():
        below = all(mine >= its for mine, its in zip(other, votes, strict=True))
        if not below:
            np.testing.assert_allclose(
                tuned.learners_[there[other]].coef_, model.learners_[was[other]].coef_, rtol=1e-9
            )
    assert tuned.learners_[there[votes]].get_params() != TunableLogistic().get_params()


def test_nodes_below_are_trained_on_what_the_tuned_node_sends_them():
    model, X, y, X_train, y_train = grown()
    tuned = model.tune({(0, 0): "fp <= 2"}, X, y, granularity="all")
    paths = tuned.decision_path(X_train).toarray() == 1
    for at, learner in tuned.learners_.items():
        came = paths[:, at]
        assert tuned.program_.sizes[at].tolist() == np.bincount(y_train[came]).tolist()
        if at > 0:
            recall = np.bincount(y_train[came])
            weights = came.sum() / 2 / recall[y_train[came]]
            alone = TunableLogistic().fit(X_train[came], y_train[came], weights)
            np.testing.assert_allclose(learner.coef_, alone.coef_, atol=1e-6)


def test_the_root_of_one_level_is_tuned_as_its_learner_would_be():
    _, X, y, X_train, y_train = grown()
    one = MartingaleBoostClassifier(n_levels=1, balance=False).fit(X_train, y_train)
    tuned = one.tune({(0, 0): "fn <= 3"}, X, y, granularity="all")
    alone = TunableLogistic().fit(X_train, y_train).tune("fn <= 3", X, y, min_gain=0)
    np.testing.assert_array_equal(tuned.predict(X), alone.predict(X))
    assert tuned.tuning_.nodes[0, 0] == alone.tuning_


@ALL_SELECT
def test_one_text_is_for_all_nodes(granularity):
    model, X, y, *_ = grown()
    tuned = model.tune("fp <= 3", X, y, granularity=granularity, max_models=2)
    program = tuned.measured(X, y)
    there = places(program)
    assert len(tuned.tuning_.nodes) > 1
    for votes, result in tuned.tuning_.nodes.items():
        assert result.met
        assert result.after == program.confusion(there[votes])
        assert result.after.fp <= 3
    by_callable = model.tune(
        lambda request: Preference("fp <= 3"), X, y, granularity=granularity, max_models=2
    )
    assert same(tuned, by_callable, X)
    assert by_callable.tuning_.nodes == tuned.tuning_.nodes


def test_one_text_need_not_suit_every_node():
    model, X, y, *_ = grown()
    wanted = int(np.sum(y == 0)) - 15
    tuned = model.tune(f"correct(0) >= {wanted}", X, y, granularity="all", max_models=0)
    program = tuned.measured(X, y)
    enough = {
        votes: program.sizes[at].all() and program.sizes[at][0] >= wanted
        for votes, at in places(program).items()
    }
    assert set(enough.values()) == {True, False}
    assert set(tuned.tuning_.nodes) == {votes for votes, suits in enough.items() if suits}


@pytest.mark.parametrize(
    "text", ["recall(setosa) >= 90%", "errors(setosa -> virginica) <= 0", "fp(setosa) <= 0"]
)
def test_one_text_may_mention_classes_that_a_node_does_not_have(text):
    """Some nodes of iris know two classes; those without setosa are left as they are."""
    model, X, y = iris()
    tuned = model.tune(text, X, y, granularity="all")
    assert (0, 0, 0) in tuned.tuning_.nodes
    there = places(tuned.program_)
    for votes in tuned.tuning_.nodes:
        assert 0 in tuned.learners_[there[votes]].classes_


def test_without_models_only_the_offset_of_a_node_moves():
    model, X, y, *_ = grown()
    tuned = model.tune({(0, 0): "fp <= 2"}, X, y, granularity="all", max_models=0)
    result = tuned.tuning_.nodes[0, 0]
    assert (result.met, result.n_models) == (True, 0)
    np.testing.assert_array_equal(tuned.learners_[0].coef_, model.learners_[0].coef_)
    assert tuned.learners_[0].offset_[0] > tuned.learners_[0].offset_[1]
    limited = model.tune({(0, 0): "fp <= 2"}, X, y, granularity="all", max_models=3)
    assert limited.tuning_.nodes[0, 0].n_models <= 3


@ALL_SELECT
def test_nodes_that_miss_their_preference_warn(granularity):
    model, X, y, *_ = grown()
    wants = {(0, 0): "fp <= 0, fn <= 0"}
    with pytest.warns(NotMetWarning, match=r"MartingaleBoostClassifier\.tune.*\(0, 0\)") as caught:
        tuned = model.tune(wants, X, y, granularity=granularity, max_models=1)
    (warning,) = caught
    assert warning.filename == __file__
    assert not tuned.tuning_.met
    node = tuned.tuning_.nodes[0, 0]
    assert tuned.tuning_.shortfall == node.shortfall == node.after.fp + node.after.fn


def test_some_nodes_may_be_met_and_others_not():
    model, X, y, *_ = grown()
    wants = {(0, 0): "fp <= 5", (0, 1): "fp <= 0, fn <= 0"}
    with pytest.warns(NotMetWarning, match=r"\b1\b.*\b2\b.*\(0, 1\)"):
        tuned = model.tune(wants, X, y, granularity="all", max_models=1)
    assert [result.met for result in tuned.tuning_.nodes.values()] == [True, False]


# The callback


def test_the_callback_receives_every_node():
    model, X, y, *_ = grown()
    steps = []
    tuned = model.tune(
        "fp <= 4", X, y, granularity="all", max_models=1, callback=lambda s: steps.append(s)
    )
    assert all(isinstance(step, Step) for step in steps)
    assert [step.number for step in steps] == list(range(1, len(tuned.tuning_.nodes) + 1))
    result = tuned.tuning_.nodes.values()
    assert [step.confusion for step in steps] == [one.after for one in result]
    assert [step.met for step in steps] == [one.met for one in result]
    assert all(step.number <= step.most for step in steps)


@pytest.mark.parametrize("last", [1, 2])
def test_a_true_result_leaves_the_other_nodes_as_they_are(last):
    model, X, y, *_ = grown()
    everyone = model.tune("fp <= 2", X, y, granularity="all", max_models=1)
    order = list(everyone.tuning_.nodes)
    tuned = model.tune(
        "fp <= 2", X, y, granularity="all", max_models=1, callback=lambda s: s.number == last
    )
    assert tuned.tuning_.cancelled
    assert list(tuned.tuning_.nodes) == order[:last]
    by_name = model.tune(
        dict.fromkeys(order[:last], "fp <= 2"), X, y, granularity="all", max_models=1
    )
    assert same(tuned, by_name, X)
    assert not by_name.tuning_.cancelled


# Again


def test_the_trained_program_is_not_changed():
    model, X, y, *_ = grown()
    before = pickle.dumps(model)
    tuned = model.tune({(0, 0): "fp <= 2"}, X, y, granularity="all")
    assert (tuned.predict(X) != model.predict(X)).any()
    assert pickle.dumps(model) == before
    assert repr(tuned) == repr(model)


def test_a_pickled_program_is_tuned_the_same():
    model, X, y, *_ = grown()
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    one, other = (m.tune("fp <= 3", X, y, granularity="all", max_models=1) for m in (model, again))
    assert one.tuning_ == other.tuning_
    assert same(one, other, X)


@pytest.mark.parametrize("text", ["fp <= 3", "fn <= 3"])
def test_none_leaves_a_program_that_was_tuned_as_a_whole_as_it_is(text):
    model, X, y, *_ = grown()
    for max_models in (0, 2):
        once = model.tune(text, X, y, max_models=max_models)
        twice = once.tune(lambda request: None, X, y, granularity="all")
        assert twice.tuning_.before == once.tuning_.after
        np.testing.assert_array_equal(twice.predict(X), once.predict(X))


def test_a_node_that_was_tuned_stays_so_when_another_one_is():
    model, X, y, *_ = grown()
    once = model.tune({(0, 0): "fp <= 3"}, X, y, granularity="all")
    local = once.measured(X, y).confusion(0)
    assert local.fp <= 3
    twice = once.tune({(1, 0): "fn <= 1"}, X, y, granularity="all")
    assert twice.measured(X, y).confusion(0) == local


@pytest.mark.parametrize("text", ["fp <= 8", "fn <= 5"])
def test_requests_of_a_tuned_program_show_its_predictions(text):
    """Its offset at the nodes is part of their predictions."""
    model, X, y, *_ = grown()
    once = model.tune(text, X, y, max_models=0)
    assert once.node_offset_.any()
    local = once.measured(X, y).confusion(0)
    requests, _ = tune_nodes(once, X, y)
    assert requests[0].confusion == local
    fewer = local.fp // 2
    twice = once.tune({(0, 0): f"fp <= {fewer}"}, X, y, granularity="all")
    result = twice.tuning_.nodes[0, 0]
    assert result.before == local
    assert result.after == twice.measured(X, y).confusion(0)
    assert twice.measured(X, y).confusion(0).fp <= fewer


def test_the_whole_program_may_be_tuned_after_its_nodes():
    model, X, y, *_ = grown()
    once = model.tune({(0, 0): "fp <= 3"}, X, y, granularity="all")
    twice = once.tune("fn <= 4", X, y)
    assert twice.tuning_.before == once.tuning_.after
    assert twice.tuning_.met
    assert twice.tuning_.after == matrix_of(twice, X, y)
    kept = once.tune("fn <= 4", X, y, max_models=0)
    assert kept.learners_[0] is once.learners_[0]


# Bad input


@ALL_SELECT
def test_other_learners_are_refused(granularity):
    _, X, y, X_train, y_train = grown()
    model = MartingaleBoostClassifier(DecisionTreeClassifier(max_depth=1), 2).fit(X_train, y_train)
    with pytest.raises(TypeError, match=r"TunableLogistic.*DecisionTreeClassifier"):
        model.tune("fp <= 1", X, y, granularity=granularity)


@ALL_SELECT
@pytest.mark.parametrize("wants", [5, None, ["fp <= 1"]], ids=repr)
def test_invalid_node_preferences_are_refused(granularity, wants):
    model, X, y, *_ = grown()
    named = rf"MartingaleBoostClassifier\.tune.*{re.escape(repr(wants))}"
    with pytest.raises(TypeError, match=named):
        model.tune(wants, X, y, granularity=granularity)


@ALL_SELECT
@pytest.mark.parametrize(
    ("change", "received"),
    [(np.zeros_like, r"\b1\b"), (lambda y: y[:3], r"\b140\b.*\(3,\)")],
)
def test_tuning_samples_are_checked(granularity, change, received):
    model, X, y, *_ = grown()
    named = rf"MartingaleBoostClassifier\.tune.*\by_tune\b.*{received}"
    with pytest.raises(ValueError, match=named):
        model.tune("fp <= 1", X, change(y), granularity=granularity)


@pytest.mark.parametrize("want", ["correct(0) >= 1000", "fp <= some", "recall(7) >= 50%"])
def test_a_preference_that_a_node_cannot_meet_is_refused(want):
    model, X, y, *_ = grown()
    for wants in ({(0, 0): want}, lambda request: want):
        with pytest.raises(PreferenceError, match=re.escape(want)):
            model.tune(wants, X, y, granularity="all")


def test_a_text_that_cannot_be_read_is_refused():
    model, X, y, *_ = grown()
    with pytest.raises(PreferenceError, match="'fpp'"):
        model.tune("fpp <= 3", X, y, granularity="all")
    with pytest.raises(PreferenceError, match="'7'"):
        model.tune("fp(7) <= 3", X, y, granularity="all")  # no node could know it


def test_an_error_of_the_callable_is_the_callers():
    """And not a matter of learners on few samples."""
    model, X, y, *_ = grown()
    with pytest.raises(ZeroDivisionError) as caught:
        model.tune(lambda request: 1 / 0, X, y, granularity="all")
    assert getattr(caught.value, "__notes__", []) == []
