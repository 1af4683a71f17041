"""What is expected of a certificate: against what the certification set then gives."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from margrave import Preference
from margrave.steer import (
    Dialog,
    ExpectedCertificate,
    GuaranteeError,
    Ledger,
    SteeredClassifier,
)


class Scores(ClassifierMixin, BaseEstimator):
    """A fitted model whose decision values are the columns."""

    def __init__(self, classes=("ham", "spam")):
        self.classes = classes
        self.classes_ = np.array(classes)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0] - 1 if len(self.classes) == 2 else X

    def predict(self, X):
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(1)]


def draw(n_ham, n_spam, seed, gap=2.0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(size=n_ham), rng.normal(gap, size=n_spam)])
    return scores[:, None], np.repeat(["ham", "spam"], [n_ham, n_spam])


def draw_three(n, seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(3), n)
    return rng.normal(size=(3 * n, 3)) + 2 * np.eye(3)[codes], np.array(["a", "b", "c"])[codes]


def asked(text, tune=(300, 300), seed=0, gap=2.0):
    dialog = Dialog(Scores(), *draw(*tune, seed, gap))
    dialog.prefer(text, strategies=["move", "reject"])
    return dialog


def rate_of(expected, true, predicted):
    (cell,) = (one for one in expected.cells if (one.true, one.predicted) == (true, predicted))
    return cell


class TestExpected:
    @pytest.mark.parametrize(
        "text",
        [
            "fp <= 8%",
            "fp <= 25%, fn <= 25%",
            "precision >= 75%",
            "fp <= 12%, fn <= 12%, rejected <= 60%",
            "fp <= 8%, rejected <= 30%",
        ],
    )
    def test_the_ranges_hold_most_of_what_comes_out(self, text):
        inside = n = 0
        for seed in range(3):
            dialog, samples = asked(text, tune=(200, 200), seed=seed), draw(300, 300, seed + 100)
            expected = dialog.expected_certificate(*samples)
            if expected.probability < 0.8:
                continue
            try:
                certificate = dialog.accept(*samples).certificate_
            except GuaranteeError:
                continue
            assert certificate.expected == expected
            for cell in expected.cells:
                of = sum(certificate.confusion[cell.true, one] for one in ("ham", "spam", None))
                rate = certificate.confusion[cell.true, cell.predicted] / of
                assert 0 <= cell.low <= cell.rate <= cell.high <= 1
                inside += cell.low - 0.01 <= rate <= cell.high + 0.01
                n += 1
        assert n >= 12
        assert inside >= 0.7 * n

    @pytest.mark.slow
    def test_the_probability_is_about_the_proportion_that_is_certified(self):
        """Requests near to what is possible, so that some are refused."""
        probabilities, certified = [], []
        for seed in range(12):
            dialog = asked("fp <= 20%, fn <= 20%", (200, 200), seed)
            samples = draw(300, 300, seed + 100)
            probabilities.append(dialog.expected_certificate(*samples).probability)
            try:
                dialog.accept(*samples)
                certified.append(True)
            except GuaranteeError:
                certified.append(False)
        assert 0.1 < np.mean(certified) < 0.9
        assert np.mean(probabilities) == pytest.approx(np.mean(certified), abs=0.35)

    def test_the_rates_of_a_class_add_up_and_those_of_bounds_agree_with_the_cells(self):
        expected = asked("fp <= 10%, fn <= 10%, rejected <= 60%").expected_certificate(
            *draw(300, 300, 1)
        )
        for true in ("ham", "spam"):
            cells = [cell for cell in expected.cells if cell.true == true]
            assert sum(cell.rate for cell in cells) == pytest.approx(1, abs=1e-5)
            assert sum(cell.tuning for cell in cells) == pytest.approx(1)
        fp, fn, rejected = expected.bounds
        assert fp.rate == rate_of(expected, "ham", "spam").rate
        assert fn.tuning == rate_of(expected, "spam", "ham").tuning
        assert 0 < rejected.rate < rejected.limit == 0.6

    def test_the_tuning_rates_are_those_of_the_step(self):
        dialog = asked("fp <= 10%")
        expected = dialog.expected_certificate(*draw(300, 300, 1))
        fp = dialog.confusion["ham", "spam"] / 300
        assert rate_of(expected, "ham", "spam").tuning == expected.bounds[0].tuning == fp

    def test_more_samples_are_worth_more(self):
        dialog = asked("fp <= 5%")
        few, many = (dialog.expected_certificate(*draw(n, 50, 1)) for n in (59, 2000))
        assert few.probability == many.probability == 1
        recall = [rate_of(one, "spam", "spam").rate for one in (few, many)]
        assert recall[0] + 0.05 < recall[1]

    def test_three_classes(self):
        dialog = Dialog(Scores(("a", "b", "c")), *draw_three(100, 0))
        dialog.prefer("fn(a) <= 40%", strategies=["move"])
        expected = dialog.expected_certificate(*draw_three(100, 1))
        assert expected.route == "tested path"
        assert len(expected.cells) == 12
        assert expected.probability > 0.9
        assert dialog.accept(*draw_three(100, 1)).certificate_.expected == expected

    def test_the_same_again(self):
        samples = draw(300, 300, 1)
        one, other = (asked("precision >= 80%").expected_certificate(*samples) for _ in range(2))
        assert one == other

    def test_it_is_written_as_json_and_as_text(self):
        expected = asked("fp <= 1%").expected_certificate(*draw(100, 100, 1))
        record = json.loads(json.dumps(expected.to_dict()))
        assert record["nearest"] == expected.nearest
        assert record["probability"] == 0
        assert record["cells"][0]["rate"] is None
        assert expected.nearest in str(expected)
        text = str(asked("fp <= 10%").expected_certificate(*draw(100, 100, 1)))
        assert "fp <= 10%" in text
        assert "nan" not in text


class TestNothingIsUsed:
    def test_the_ledger_records_nothing(self):
        X, y = draw(600, 600, 3)
        dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        dialog.prefer("fp <= 10%", strategies=["move"])
        dialog.expected_certificate()
        assert dialog.certification.uses == ()
        assert dialog.accept().certificate_.number == 1
        with pytest.raises(GuaranteeError) as caught:
            dialog.expected_certificate()
        assert caught.value.code == "used_up"

    def test_the_scores_of_the_certification_set_do_not_matter(self):
        X, y = draw(200, 200, 1)
        dialog = asked("fp <= 10%, fn <= 40%")
        assert dialog.expected_certificate(X, y) == dialog.expected_certificate(X + 5, y)

    def test_what_is_left_of_the_error_probability_counts(self):
        dialog, samples = asked("fp <= 10%"), draw(300, 300, 1)
        whole, half = (dialog.expected_certificate(*samples, reserve=one) for one in (False, True))
        assert (whole.delta, half.delta) == pytest.approx((0.05, 0.025))
        assert half.bounds[0].rate < whole.bounds[0].rate

    def test_without_a_preference_or_a_set(self):
        dialog = Dialog(Scores(), *draw(100, 100, 0))
        with pytest.raises(GuaranteeError) as caught:
            dialog.expected_certificate(*draw(100, 100, 1))
        assert caught.value.code == "no_preference"
        with pytest.raises(GuaranteeError) as caught:
            asked("fp <= 10%").expected_certificate()
        assert caught.value.code == "no_certification_set"

    def test_without_a_class(self):
        X, y = draw(100, 0, 1)
        with pytest.raises(GuaranteeError) as caught:
            asked("fp <= 10%").expected_certificate(X, y)
        assert caught.value.code == "too_few_samples"

    def test_a_refusal_that_is_known_beforehand_opens_no_use(self):
        class Recorder(Ledger):
            n_uses = 0

            def use(self, *args, **kwargs):
                self.n_uses += 1
                return super().use(*args, **kwargs)

        ledger = Recorder()
        X, y = draw(600, 600, 3)
        dialog = Dialog.from_data(X, y, committee="logistic", random_state=0, ledger=ledger)
        dialog.prefer("fp <= 4%, fn <= 4%", strategies=["move"])
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept()
        assert not caught.value.used_up
        assert ledger.n_uses == 0
        dialog.prefer("fp <= 30%", strategies=["move"])
        dialog.accept()
        assert ledger.n_uses == 1

    @pytest.mark.parametrize("confidence", [0, 1, "0.9", None])
    def test_what_is_no_confidence(self, confidence):
        with pytest.raises(ValueError, match="confidence"):
            asked("fp <= 10%").expected_certificate(*draw(99, 99, 1), confidence=confidence)


class TestNearest:
    @pytest.mark.parametrize(
        "text",
        ["fp <= 1%", "fp <= 0", "recall >= 99.9%", "fp <= 5%, fn <= 5%", "precision >= 98%"],
    )
    def test_it_has_the_same_bounds_and_can_be_certified(self, text):
        samples = draw(150, 150, 1)
        expected = asked(text).expected_certificate(*samples)
        assert expected.probability < 0.5
        nearest = Preference(expected.nearest)
        for one, other in zip(nearest.bounds, Preference(text).bounds, strict=True):
            assert (one.word, one.at_most) == (other.word, other.at_most)
            assert one.limit >= other.limit if one.at_most else one.limit <= other.limit
        again = asked(expected.nearest).expected_certificate(*samples)
        assert again.probability > 0.85

    @pytest.mark.core
    def test_limits_that_are_a_fifth_lower_have_a_lower_probability(self):
        samples = draw(150, 150, 1)
        nearest = asked("fp <= 15%, fn <= 15%").expected_certificate(*samples).nearest
        limits = [80 * float(bound.limit) for bound in Preference(nearest).bounds]
        lower = asked("fp <= {:.1f}%, fn <= {:.1f}%".format(*limits))
        assert lower.expected_certificate(*samples).probability < 0.9

    @pytest.mark.parametrize("n", [100, 200])
    def test_where_the_samples_are_too_few_it_is_the_limit_that_they_support(self, n):
        error = None
        try:
            asked("fp <= 0.5%").accept(*draw(n, n, 1))
        except GuaranteeError as caught:
            error = caught
        nearest = asked("fp <= 0.5%").expected_certificate(*draw(n, n, 1)).nearest
        limit = float(Preference(nearest).bounds[0].limit)
        assert error.fields["supported"] <= limit <= error.fields["supported"] + 0.002

    def test_a_likely_one_has_none(self):
        assert asked("fp <= 10%").expected_certificate(*draw(300, 300, 1)).nearest is None

    def test_a_refusal_that_is_known_beforehand_offers_it(self):
        dialog, samples = asked("fp <= 4%, fn <= 4%"), draw(150, 150, 1)
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept(*samples)
        assert not caught.value.used_up
        assert caught.value.fields["nearest"] == dialog.expected_certificate(*samples).nearest
        dialog.prefer("fp <= 10%", strategies=["move"])
        assert dialog.accept(*samples).certificate_.number == 1


class TestInTheCertificate:
    def test_it_is_kept_in_files(self, tmp_path):
        model = asked("fp <= 10%").accept(*draw(300, 300, 1))
        model.save(tmp_path / "model.skops")
        loaded = SteeredClassifier.load(
            tmp_path / "model.skops", trusted=[f"{__name__}.Scores"]
        ).certificate_
        assert isinstance(loaded.expected, ExpectedCertificate)
        assert loaded.expected == model.certificate_.expected
        assert loaded.to_dict()["expected"]["probability"] == 1

    def test_a_recertified_model_expects_nothing(self):
        model = asked("fp <= 10%").accept(*draw(300, 300, 1))
        new = model.recertify(*draw(300, 300, 2)).certificate_
        assert new.expected is None
        assert new.to_dict()["expected"] is None
