"""Competence, choice and votes: hand-worked queries, and plain loops as the referee."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB

from margrave.select import LocalSelectionClassifier
from margrave.select import _competence as competence
from margrave.select._competence import (
    METHODS,
    MetaClassifier,
    MetaFeatures,
    Neighbourhood,
    to_tenths,
)
from margrave.select._local import count_votes, mean_proba


def near(correct, labels=None, predicted=None, distance=None, weight=None, n_classes=2):
    correct = np.asarray(correct, dtype=bool)
    q, k, n_members = correct.shape
    return Neighbourhood(
        correct=correct,
        labels=np.zeros((q, k), int) if labels is None else np.asarray(labels),
        distance=np.ones((q, k)) if distance is None else np.asarray(distance, float),
        weight=None if weight is None else np.asarray(weight, float),
        predicted=np.zeros((q, n_members), int) if predicted is None else np.asarray(predicted),
        n_classes=n_classes,
    )


# One query with four neighbours, nearest first; three members.
WORKED = near(
    [[[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]]],
    labels=[[0, 1, 1, 0]],
    predicted=[[0, 1, 1]],
    distance=[[1.0, 2.0, 4.0, 0.0]],
)


class TestWorked:
    def test_ola_is_the_accuracy_on_the_neighbours(self):
        assert competence.ola(WORKED).tolist() == [[0.75, 0.75, 0.25]]

    def test_counts(self):
        assert competence.count_correct(WORKED).tolist() == [[3, 3, 1]]

    def test_lca_is_the_accuracy_on_neighbours_of_the_predicted_class(self):
        # Member 1 predicts 0: correct on both 0s. The others predict 1: correct on one of two 1s.
        assert competence.lca(WORKED).tolist() == [[1.0, 0.5, 0.5]]

    def test_lca_is_0_where_no_neighbour_is_of_that_class(self):
        alone = near([[[1], [1]]], labels=[[0, 0]], predicted=[[1]])
        assert competence.lca(alone).tolist() == [[0.0]]

    def test_mla_weights_by_one_over_the_distance(self):
        # Member 2 predicts 1: the 1s are at distance 2 (wrong) and 4 (right): 1/4 of 3/4.
        assert competence.mla(WORKED)[0] == pytest.approx([1.0, 1 / 3, 1 / 3])

    def test_a_neighbour_at_the_same_place_outweighs_all_others(self):
        neighbourhood = near([[[0], [1]]], labels=[[0, 0]], distance=[[0.0, 1.0]])
        assert competence.mla(neighbourhood)[0, 0] == pytest.approx(0, abs=1e-9)

    def test_rank_counts_up_to_the_first_error(self):
        assert competence.rank(WORKED).tolist() == [[2, 1, 0]]

    def test_double_faults_count_other_members_that_are_wrong_too(self):
        # Wrong at the neighbours: {3}, {2, 3}, {1}, {3}: members 2 and 3 have one in common.
        assert competence.double_faults(WORKED).tolist() == [[0, 1, 1]]

    def test_a_weight_repeats_a_neighbour(self):
        weighted = near(WORKED.correct, WORKED.labels, WORKED.predicted, weight=[[2, 1, 1, 1]])
        assert competence.ola(weighted)[0] == pytest.approx([4 / 5, 4 / 5, 1 / 5])
        assert competence.rank(weighted).tolist() == [[3, 2, 0]]

    def test_a_weight_of_two_is_the_neighbour_twice(self):
        weighted = near(WORKED.correct, WORKED.labels, WORKED.predicted, weight=[[2, 1, 1, 1]])
        twice = near(
            WORKED.correct[:, [0, 0, 1, 2, 3]], WORKED.labels[:, [0, 0, 1, 2, 3]], WORKED.predicted
        )
        for measure in (
            competence.ola,
            competence.lca,
            competence.rank,
            competence.count_correct,
            competence.double_faults,
        ):
            assert measure(weighted) == pytest.approx(measure(twice))


@st.composite
def neighbourhoods(draw):
    q, k, n_members, n_classes = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 7)),
        draw(st.integers(2, 4)),
    )
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    weight = random.integers(1, 4, (q, k)) if draw(st.booleans()) else None
    return near(
        random.random((q, k, n_members)) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])),
        labels=random.integers(0, n_classes, (q, k)),
        predicted=random.integers(-1, n_classes, (q, n_members)),
        distance=random.random((q, k)),
        weight=weight,
        n_classes=n_classes,
    )


def by_loops(measure, neighbourhood):
    """The definitions, one query, member and neighbour at a time."""
    q, k, n_members = neighbourhood.correct.shape
    weight = np.ones((q, k)) if neighbourhood.weight is None else neighbourhood.weight
    found = np.zeros((q, n_members))
    for i in range(q):
        for m in range(n_members):
            correct = [neighbourhood.correct[i, j, m] for j in range(k)]
            same = [neighbourhood.labels[i, j] == neighbourhood.predicted[i, m] for j in range(k)]
            v = list(weight[i])
            if measure == "mla":
                v = [v[j] / neighbourhood.distance[i, j] for j in range(k)]
            if measure == "count_correct":
                found[i, m] = sum(v[j] for j in range(k) if correct[j])
            elif measure == "ola":
                found[i, m] = sum(v[j] for j in range(k) if correct[j]) / sum(v)
            elif measure in ("lca", "mla"):
                total = sum(v[j] for j in range(k) if same[j])
                hits = sum(v[j] for j in range(k) if same[j] and correct[j])
                found[i, m] = hits / total if total else 0
            elif measure == "rank":
                for j in range(k):
                    if not correct[j]:
                        break
                    found[i, m] += v[j]
            else:
                for j in range(k):
                    others = [neighbourhood.correct[i, j, o] for o in range(n_members) if o != m]
                    found[i, m] += 0 if correct[j] else v[j] * others.count(False)
    return found


@given(neighbourhoods())
@pytest.mark.parametrize("measure", ["count_correct", "ola", "lca", "mla", "rank", "double_faults"])
def test_arrays_agree_with_loops(measure, neighbourhood):
    assert getattr(competence, measure)(neighbourhood) == pytest.approx(
        by_loops(measure, neighbourhood)
    )


class TestChoosing:
    def test_all_of_the_best_but_none_without_any_competence(self):
        found = competence.select_best(np.array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]), WORKED)
        assert found.tolist() == [[False, True, True], [False] * 3]

    def test_better_than_chance_depends_on_the_number_of_classes(self):
        accuracy = np.array([[0.25, 0.3, 0.5]])
        four = near([[[1, 1, 1]]], n_classes=4)
        assert competence.select_better_than_chance(accuracy, four).tolist() == [
            [False, True, True]
        ]
        assert competence.select_better_than_chance(accuracy, WORKED).tolist() == [[False] * 3]

    def test_des_knn_selects_accurate_members_with_few_double_faults(self):
        # Ten members at five neighbours: 0 to 5 are wrong once, 6 to 9 three times. Of the first
        # six the later five stay. Of these 4 and 5 fail with four others, the rest with seven.
        correct = np.ones((1, 5, 10), dtype=bool)
        correct[0, 0, [0, 1, 2, 3]] = False
        correct[0, 1, 4] = correct[0, 2, 5] = False
        correct[0, :3, 6:] = False
        neighbourhood = near(correct)
        assert competence.double_faults(neighbourhood)[0, :6].tolist() == [7, 7, 7, 7, 4, 4]
        chosen = competence.select_accurate_and_diverse(
            competence.ola(neighbourhood), neighbourhood
        )
        assert np.flatnonzero(chosen[0]).tolist() == [1, 4, 5]

    def test_of_several_the_first(self):
        chosen = np.array([[False, True, True], [False, False, False]])
        assert competence.keep_first(chosen).tolist() == [[False, True, False], [False] * 3]

    def test_votes_count_those_chosen_and_no_abstention(self):
        codes = np.array([[0, 1, 1, -1]])
        chosen = np.array([[True, True, False, True]])
        assert count_votes(codes, chosen, None, 2).tolist() == [[1, 1]]
        weight = np.array([[1.0, 2.5, 4.0, 8.0]])
        assert count_votes(codes, chosen, weight, 2).tolist() == [[1, 2.5]]

    def test_mean_probabilities_of_those_chosen(self):
        proba = np.array([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]])
        chosen = np.array([[True, True, False]])
        assert mean_proba(proba, chosen, None).tolist() == [[0.75, 0.25]]
        weight = np.array([[1.0, 3.0, 9.0]])
        assert mean_proba(proba, chosen, weight).tolist() == [[0.625, 0.375]]


@given(neighbourhoods())
def test_des_knn_prefers_the_accurate_then_the_diverse(neighbourhood):
    """No selected member is less accurate than one that is left out of the most accurate half."""
    accuracy = competence.ola(neighbourhood)
    chosen = competence.select_accurate_and_diverse(accuracy, neighbourhood)
    n_members = accuracy.shape[1]
    kept = max(n_members // 2, 1)
    assert (chosen.sum(axis=1) <= min(int(np.ceil(0.3 * n_members)), kept)).all()
    border = np.sort(accuracy, axis=1)[:, -kept]
    faults = competence.double_faults(neighbourhood)
    for i in range(len(accuracy)):
        assert (accuracy[i, chosen[i]] >= border[i]).all()
        surely = (accuracy[i] > border[i]) & ~chosen[i]
        if chosen[i].any() and surely.any():
            assert faults[i, surely].min() >= faults[i, chosen[i]].max() - 1e-9


class TestMeta:
    def test_steps_are_tenths(self):
        assert to_tenths(np.array([0.0, 0.05, 0.1, 0.1 - 1e-17, 0.55, 0.99, 1.0])).tolist() == [
            0, 0, 1, 1, 5, 9, 10,
        ]  # fmt: skip

    @pytest.fixture
    def features(self):
        random = np.random.default_rng(0)
        q, k, k_p, n_members = 40, 7, 5, 9
        return MetaFeatures.of(
            random.random((q, k, n_members)) < 0.6,
            to_tenths(random.random((q, k, n_members))),
            random.random((q, n_members)),
            random.random((q, k_p, n_members)) < 0.6,
            random.random((q, n_members)),
        )

    @staticmethod
    def rows(features):
        """One row for each query and member, as scikit-learn needs them."""
        return np.hstack(
            [
                features.correct.swapaxes(1, 2).reshape(-1, 7),
                features.true_class.swapaxes(1, 2).reshape(-1, 7),
                features.accuracy.reshape(-1, 1),
                features.profile.swapaxes(1, 2).reshape(-1, 5),
                features.confidence.reshape(-1, 1),
            ]
        ).astype(float)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_it_is_scikit_learns_naive_bayes(self, features, weighted):
        random = np.random.default_rng(1)
        correct = random.random((40, 9)) < 0.7
        weight = random.random((40, 9)) if weighted else np.ones((40, 9))
        sums = np.array([features.sums(~correct * weight), features.sums(correct * weight)])
        totals = np.array([weight[~correct].sum(), weight[correct].sum()])
        ours = MetaClassifier.fit(sums, totals).competence(features)
        X = self.rows(features)
        bayes = MultinomialNB().fit(X, correct.ravel(), sample_weight=weight.ravel())
        assert ours.ravel() == pytest.approx(bayes.predict_proba(X)[:, 1])

    def test_sums_of_many_true_and_false_do_not_overflow(self, features):
        everything = np.ones((40, 9), dtype=bool)
        assert features.sums(everything) == pytest.approx(self.rows(features).sum(axis=0))

    @pytest.mark.parametrize(("totals", "sure"), [((0, 5), 1.0), ((5, 0), 0.0)])
    def test_a_member_that_is_never_wrong_or_never_correct_has_probability_1_or_0(
        self, features, totals, sure
    ):
        sums = np.array([features.sums(np.full((40, 9), total > 0)) for total in totals])
        learned = MetaClassifier.fit(sums, np.array(totals, float))
        assert (learned.competence(features) == sure).all()


def test_the_methods_are_those_of_the_documentation():
    assert list(METHODS) == [
        "ola", "lca", "rank", "mla", "knora-e", "knora-u", "des-knn", "des-p", "knop", "meta-des",
    ]  # fmt: skip
    for name in METHODS:
        assert f'"{name}"' in LocalSelectionClassifier.__doc__
