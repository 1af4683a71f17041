"""A certificate for a useless model: forecast, refused before anything is used up, and named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from margrave import Confusion, Preference
from margrave.steer import Dialog, GuaranteeError, Ledger, SteeredClassifier, UselessWarning
from margrave.steer._certificate import Certificate, make_cells, make_guarantees

pytestmark = pytest.mark.core


class Judge(ClassifierMixin, BaseEstimator):
    """A fitted model whose decision value is the score of another judge, from 0 to 10."""

    classes_ = np.array(["bad", "good"])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0] - 7.5

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def judged(n_bad, n_good, seed, gap=2.0, digits=0):
    """Answers with a score; a third of the good ones are scored like the bad ones."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["bad", "good"], [n_bad, n_good])
    scores = 6 + gap * (y == "good") + rng.normal(scale=2.0, size=len(y))
    return np.clip(np.round(scores, digits), 0, 10)[:, None], y


def start(text, seed=0, n=(300, 100), **settings):
    dialog = Dialog(Judge(), *judged(*n, seed), duplicates="independent", **settings)
    dialog.prefer(text, strategies=["move"])
    return dialog


def certificate_on(counts, classes=("bad", "good")):
    matrix, wanted = Confusion(counts, classes=classes), Preference("errors <= 90%")
    return Certificate(
        str(wanted), str(wanted), "fewest errors", 0.95, 0.05, 1, "tested path", "move",
        make_guarantees(wanted, matrix, 0.05), matrix, make_cells(matrix, 0.95), matrix,
        "2026-01-31", "samples",
    )  # fmt: skip


class TestWhatIsUseless:
    @pytest.mark.parametrize(
        ("counts", "useless"),
        [
            ([[90, 10, 0], [20, 30, 0]], False),
            ([[100, 0, 0], [50, 0, 0]], True),  # good is never predicted
            ([[0, 100, 0], [0, 50, 0]], True),
            ([[90, 10, 0], [45, 5, 0]], True),  # as often as a guess would
            ([[90, 10, 0], [44, 6, 0]], False),
            ([[20, 80, 0], [20, 30, 0]], True),  # worse than a guess
            ([[0, 0, 100], [0, 0, 50]], True),  # all are rejected
            ([[10, 0, 90], [0, 5, 45]], False),
        ],
    )
    def test_two_classes(self, counts, useless):
        assert bool(certificate_on(counts).useless) == useless

    def test_of_three_classes_one_that_is_never_predicted_is_named(self):
        counts = [[8, 2, 0, 0], [3, 7, 0, 0], [5, 5, 0, 0]]
        (reason,) = certificate_on(counts, ("ash", "birch", "cedar")).useless
        assert "cedar" in reason
        assert "birch" not in reason

    @given(st.lists(st.integers(0, 40), min_size=6, max_size=6), st.integers(2, 9))
    def test_it_depends_on_the_rates_within_each_of_two_classes_only(self, counts, times):
        table = np.array(counts).reshape(2, 3)
        table[:, 0] += 1  # no class without samples
        more = table * np.array([[times], [1]])
        assert bool(certificate_on(table).useless) == bool(certificate_on(more).useless)

    @given(st.lists(st.integers(0, 40), min_size=6, max_size=6))
    def test_it_is_as_with_a_guess_that_predicts_each_class_as_often(self, counts):
        table = np.array(counts).reshape(2, 3)
        table[:, 0] += 1
        predicted = table.sum(axis=0)[:2] / table.sum()
        recall = np.diag(table[:, :2]) / table.sum(axis=1)
        assert bool(certificate_on(table).useless) == bool((recall <= predicted + 1e-12).any())


class TestBeforehand:
    def test_a_useless_model_is_forecast_and_nothing_is_used_up(self):
        ledger = Ledger()
        dialog, samples = start("fp <= 3%", ledger=ledger), judged(200, 90, 1)
        expected = dialog.expected_certificate(*samples)
        assert expected.probability > 0.9
        assert expected.useful < 0.5
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept(*samples)
        assert (caught.value.code, caught.value.used_up) == ("improbable", False)
        assert caught.value.fields["useful"] == expected.useful
        assert caught.value.fields["nearest"] == expected.nearest
        assert ledger.in_memory == []
        dialog.prefer(expected.nearest, strategies=["move"])
        assert dialog.accept(*samples).certificate_.useless == ()

    def test_an_improbable_certificate_likewise(self):
        ledger = Ledger()
        dialog, samples = start("fp <= 20%, fn <= 60%", ledger=ledger), judged(300, 90, 1)
        probability = dialog.expected_certificate(*samples).probability
        assert 0 < probability < 0.5
        for call in (dialog.accept, dialog.accept):
            with pytest.raises(GuaranteeError) as caught:
                call(*samples)
            assert caught.value.code == "improbable"
            assert caught.value.fields["probability"] == probability
        assert ledger.in_memory == []

    def test_it_goes_on_if_the_user_wants_it_and_says_what_came_out(self):
        dialog, samples = start("fp <= 3%"), judged(200, 90, 1)
        with pytest.warns(UselessWarning, match="good"):
            model = dialog.accept(*samples, anyway=True)
        assert model.certificate_.guarantees[0].rate <= 0.03
        assert model.certificate_.useless
        assert model.certificate_.expected.nearest is not None
        assert model.certificate_.to_dict()["useless"] == list(model.certificate_.useless)
        assert all(reason in model.model_card() for reason in model.certificate_.useless)

    def test_the_check_beforehand_agrees(self):
        X, y = judged(700, 300, 2)
        dialog = Dialog.from_data(
            X, y, committee=LogisticRegression(), duplicates="independent", random_state=0
        )
        dialog.prefer("fp <= 3%", strategies=["move"])
        with pytest.raises(GuaranteeError) as caught:
            dialog.check_accept()
        assert caught.value.code == "improbable"
        dialog.check_accept(anyway=True)

    @pytest.mark.parametrize(
        "text",
        [
            "recall >= 99%",
            "fn <= 1%, fp <= 1%",
            "precision >= 99%",
            "recall >= 40%, fp <= 1%",
            "fn <= 30%, fp <= 2%",
        ],
    )
    @pytest.mark.parametrize("gap", [0.0, 0.5])
    def test_no_limit_that_allows_everything_is_suggested(self, text, gap):
        dialog = Dialog(Judge(), *judged(200, 200, 0, gap, 3), duplicates="independent")
        dialog.prefer(text, strategies=["move"])
        expected = dialog.expected_certificate(*judged(150, 150, 1, gap, 3))
        assert expected.useful < 0.5
        for bound in Preference(expected.nearest).bounds if expected.nearest else ():
            assert 0 < bound.limit < 1

    def test_a_fit_in_one_call_warns(self):
        model = SteeredClassifier(
            Judge(), preference="fp <= 1%", duplicates="independent", random_state=0
        )
        with pytest.warns(UselessWarning):
            model.fit(*judged(900, 300, 2))
        with pytest.warns(UselessWarning):
            model.recertify(*judged(900, 300, 3))


class TestErrorsInPlainNumbers:
    def test_they_are_those_of_the_certification_set(self):
        certificate = certificate_on([[90, 10, 0], [10, 30, 10]])
        assert certificate.describe_errors() == (
            "of 100 bad, 10 predicted good; of 100 good, 20 predicted bad, 20 rejected"
        )
        numbers = certificate.describe_errors({"bad": 900, "good": 50.2})
        assert "of 900 bad, 90 predicted good" in numbers
        assert "of 50 good, 10 predicted bad" in numbers

    def test_few_and_none(self):
        certificate = certificate_on([[999, 1, 0], [0, 40, 0]])
        assert "fewer than 1" in certificate.describe_errors()
        assert certificate.describe_errors({"bad": 2000, "good": 9}).count(" 2 ") == 1

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("gap", [2.0, 0.2])
    def test_a_surprise_is_said_and_nothing_else(self, seed, gap):
        """In some certification sets the classes are nearer to each other than was expected."""
        dialog = Dialog(Judge(), *judged(400, 400, seed, digits=3), duplicates="independent")
        dialog.prefer("fp <= 10%", strategies=["move"])
        samples = judged(400, 400, seed + 9, gap, digits=3)
        certificate = dialog.accept(*samples).certificate_
        outside = 0
        for cell in certificate.expected.cells:
            n = sum(certificate.confusion[cell.true, label] for label in ("bad", "good", None))
            rate = certificate.confusion[cell.true, cell.predicted] / n
            inside = cell.low <= round(rate, 6) <= cell.high
            outside += cell.true != cell.predicted and not inside
        assert certificate.describe_errors().count("expected") == outside
        assert outside or gap == 2.0
