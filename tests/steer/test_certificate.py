"""Certificates: sentences, evidence, whether they still hold, and setting them anew."""

import re
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from margrave import Confusion, Preference
from margrave.steer import Cell, Check, Dialog, Promise, PromiseError
from margrave.steer._certificate import Certificate, cells, checked, promises
from margrave.steer._sentences import sentence

TWO = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])
THREE = Confusion([[8, 1, 1, 0], [0, 9, 1, 2], [2, 0, 8, 0]], classes=["ash", "birch", "cedar"])


def certificate_of(preference, matrix, confidence=0.95):
    """A certificate as it is issued, on a matrix."""
    delta = 1 - confidence
    return Certificate(
        preference=str(preference),
        asked=str(preference),
        confidence=confidence,
        delta=delta,
        number=1,
        route="order statistics",
        way="move",
        promises=promises(preference, matrix, delta),
        confusion=matrix,
        cells=cells(matrix, confidence),
        tuning=matrix,
        issued="2024-05-06",
        samples="these",
        notes=("groups were kept together.",),
    )


class TestSentences:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("fp <= 5%", "at most 5 % of ham called spam"),
            ("fp(ham) <= 5%", "at most 5 % of spam called ham"),
            ("fn <= 0.5%", "at most 0.5 % of spam called ham"),
            ("fn(ham) <= 12.5%", "at most 12.5 % of ham called spam"),
            ("recall >= 90%", "at least 90 % of spam called spam"),
            ("recall(ham) <= 90%", "at most 90 % of ham called ham"),
            ("correct(ham) >= 90%", "at least 90 % of ham called ham"),
            ("errors(spam -> ham) <= 5%", "at most 5 % of spam called ham"),
            ("errors <= 5%", "at most 5 % of all samples get a wrong answer"),
            ("alarms <= 3%", "at most 3 % of all samples are called spam"),
            ("alarms(ham) >= 3%", "at least 3 % of all samples are called ham"),
            ("rejected <= 5%", "at most 5 % of all samples are given no answer"),
            ("rejected(ham) <= 5%", "at most 5 % of ham given no answer"),
            ("precision >= 80%", "at least 80 % of what is called spam is spam"),
            ("precision(ham) >= 80%", "at least 80 % of what is called ham is ham"),
        ],
    )
    def test_every_word_with_two_classes(self, text, told):
        assert sentence(Preference(text).bounds[0], TWO) == told

    @pytest.mark.parametrize("text", ["accuracy >= 90%", "correct >= 90%"])
    @pytest.mark.parametrize("matrix", [TWO, THREE])
    def test_accuracy_is_a_share_of_all_samples_not_of_the_answers(self, text, matrix):
        """Rates keep rejected samples in the base, so "of all answers" would be another share."""
        told = sentence(Preference(text).bounds[0], matrix)
        assert told.startswith("at least 90 % of all samples ")

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("fp(ash) <= 5%", "at most 5 % of birch or cedar called ash"),
            ("fn(ash) <= 5%", "at most 5 % of ash called birch or called cedar"),
            ("recall(birch) >= 90%", "at least 90 % of birch called birch"),
            ("correct(birch) >= 90%", "at least 90 % of birch called birch"),
            ("errors(ash -> cedar) <= 5%", "at most 5 % of ash called cedar"),
            ("errors <= 5%", "at most 5 % of all samples get a wrong answer"),
            ("alarms(cedar) <= 3%", "at most 3 % of all samples are called cedar"),
            ("rejected <= 5%", "at most 5 % of all samples are given no answer"),
            ("rejected(cedar) <= 5%", "at most 5 % of cedar given no answer"),
            ("precision(birch) >= 80%", "at least 80 % of what is called birch is birch"),
        ],
    )
    def test_every_word_with_three_classes(self, text, told):
        assert sentence(Preference(text).bounds[0], THREE) == told

    def test_the_positive_class_is_meant_where_none_is_named(self):
        matrix = Confusion(THREE.counts, THREE.classes, positive="cedar")
        told = sentence(Preference("fp <= 5%").bounds[0], matrix)
        assert told == "at most 5 % of ash or birch called cedar"

    @given(st.integers(0, 100_000))
    def test_the_share_is_told_as_it_is(self, thousandths):
        """To all its digits: 'recall >= 99.996%' is not 'at least 100 %'."""
        limit = f"{thousandths // 1000}.{thousandths % 1000:03d}"
        told = sentence(Preference(f"recall >= {limit}%").bounds[0], TWO)
        assert float(re.match(r"at least ([\d.e+-]+) % of spam", told).group(1)) == float(limit)


class TestPromises:
    def test_counts_are_those_of_the_matrix(self):
        wanted = Preference("fp <= 10%, recall >= 70%, precision >= 80%, rejected <= 9%")
        found = promises(wanted, TWO, 0.01)
        assert [(one.count, one.n) for one in found] == [(6, 100), (40, 50), (40, 46), (6, 150)]
        assert [one.limit for one in found] == [0.1, 0.7, 0.8, 0.09]
        assert [one.at_most for one in found] == [True, False, False, True]
        assert {one.delta for one in found} == {0.01}
        assert [one.bound for one in found] == [str(bound) for bound in wanted.bounds]
        assert found[0].rate == 0.06

    def test_as_text(self):
        (found,) = promises(Preference("fp <= 10%, rejected <= 9%"), TWO, 0.01)[:1]
        assert str(found) == "at most 10 % of ham called spam (6 of 100 certify samples, 6.00%)"

    def test_of_no_samples_there_is_no_rate(self):
        assert np.isnan(Promise("b", "s", 0.1, True, 0, 0, 0.05).rate)


class TestCells:
    @settings(max_examples=10)
    @given(st.lists(st.integers(0, 40), min_size=12, max_size=12), st.sampled_from([0.8, 0.95]))
    def test_intervals_are_clopper_and_pearsons_about_the_share(self, counts, level):
        matrix = Confusion(np.reshape(counts, (3, 4)), classes=["a", "b", "c"])
        found = cells(matrix, level)
        places = [(true, answer) for true in "abc" for answer in ("a", "b", "c", None)]
        assert [(cell.true, cell.answer) for cell in found] == places
        for cell in found:
            assert cell.count == matrix[cell.true, cell.answer]
            assert cell.n == matrix.counts["abc".index(cell.true)].sum()
            if cell.n == 0:
                assert (cell.low, cell.high) == (0, 1)
                continue
            exact = binomtest(cell.count, int(cell.n)).proportion_ci(level, "exact")
            assert (cell.low, cell.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
            assert cell.low <= cell.count / cell.n <= cell.high


class TestChecking:
    wanted = Preference("fp <= 10%, recall >= 70%, rejected <= 50%")
    certificate = certificate_of(wanted, TWO)

    @given(st.lists(st.integers(0, 60), min_size=6, max_size=6), st.floats(0.001, 0.5))
    def test_an_alarm_is_a_count_too_improbable_for_the_promise(self, counts, level):
        matrix = Confusion(np.reshape(counts, (2, 3)), classes=["ham", "spam"])
        check = checked(self.certificate, self.wanted, matrix, level)
        sizes = matrix.counts.sum(axis=1)
        amounts = [matrix["ham", "spam"], matrix["spam", "spam"], matrix.n_rejected]
        bases = [sizes[0], sizes[1], sizes.sum()]
        sides = ["greater", "less", "greater"]
        for kept, count, n, limit, side in zip(
            check.promises, amounts, bases, [0.1, 0.7, 0.5], sides, strict=True
        ):
            p = binomtest(int(count), int(n), limit, alternative=side).pvalue if n else 1.0
            assert (kept.count, kept.n) == (count, n)
            assert kept.p == pytest.approx(p, rel=1e-9)
            assert kept.alarm is (kept.p < level / 3)
        assert check.alarm is any(kept.alarm for kept in check.promises)
        assert bool(check) is not check.alarm
        assert check.confusion == matrix

    def test_an_alarm_is_raised_falsely_no_more_often_than_the_level_says(self):
        """The promise just holds: 10 % of ham is called spam, 70 % of spam is."""
        rng, n_alarms, n_checks = np.random.default_rng(0), 0, 400
        for _ in range(n_checks):
            ham, spam = rng.binomial(300, 0.1), rng.binomial(200, 0.7)
            matrix = Confusion([[300 - ham, ham, 0], [200 - spam, spam, 0]], ["ham", "spam"])
            n_alarms += checked(self.certificate, self.wanted, matrix, 0.1).alarm
        assert binomtest(n_alarms, n_checks, 0.1, alternative="greater").pvalue > 1e-4
        assert n_alarms > 5

    def test_a_promise_that_is_plainly_broken(self):
        matrix = Confusion([[50, 50, 0], [10, 90, 0]], ["ham", "spam"])
        check = checked(self.certificate, self.wanted, matrix, 0.05)
        assert not check
        assert [kept.alarm for kept in check.promises] == [True, False, False]
        first, second, third = str(check).splitlines()
        p = binomtest(50, 100, 0.1, alternative="greater").pvalue
        assert first == f"at most 10 % of ham called spam: BROKEN (50 of 100, p = {p:.2g})"
        assert second == (
            "at least 70 % of spam called spam: kept, as far as these samples tell "
            "(90 of 100, p = 1)"
        )
        assert third.startswith("at most 50 % of all samples are given no answer: kept")

    def test_no_samples_of_a_class_say_nothing_of_it(self):
        matrix = Confusion([[0, 0, 0], [1, 9, 0]], ["ham", "spam"])
        check = checked(self.certificate, self.wanted, matrix, 0.05)
        assert check
        assert check.promises[0].p == 1


class TestAsText:
    def test_all_of_it(self):
        wanted = Preference("fp <= 10%, recall >= 70%, rejected <= 50%")
        told = str(certificate_of(wanted, TWO)).splitlines()
        assert told[0] == "With confidence 0.95, on new samples like the certify samples:"
        assert [line.strip() for line in told[1:4]] == [
            "at most 10 % of ham called spam (6 of 100 certify samples, 6.00%)",
            "at least 70 % of spam called spam (40 of 50 certify samples, 80.00%)",
            "at most 50 % of all samples are given no answer (6 of 150 certify samples, 4.00%)",
        ]
        assert told[4].startswith("Set on 150 samples that no step had seen")
        assert "by order statistics" in told[4]
        assert "certificate 1 on them" in told[4]
        assert [line.strip() for line in told[5:8]] == [
            line.strip() for line in str(TWO).splitlines()
        ]
        assert told[8:] == ["Note: groups were kept together."]

    @pytest.mark.parametrize("confidence", [0.99, 0.999, 0.99999, 0.999999])
    def test_a_confidence_is_never_told_as_certainty(self, confidence):
        told = str(certificate_of(Preference("fp <= 10%, rejected <= 9%"), TWO, confidence))
        shown = float(re.match(r"With confidence ([\d.]+),", told).group(1))
        assert shown == pytest.approx(confidence, abs=(1 - confidence) / 10)


def samples(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 1.5 * y[:, None] + shift * (y == 0)[:, None]
    return X, np.where(y == 1, "spam", "ham")


MODEL = LogisticRegression().fit(*samples(100, 0))


def accepted(text, ways=("move", "reject"), **options):
    dialog = Dialog(MODEL, *samples(300, 1))
    dialog.prefer(text, ways=list(ways))
    return dialog.accept(*samples(500, 2), **options)


class TestIssued:
    @pytest.mark.parametrize(
        "text", ["fp <= 10%", "precision >= 75%", "fp <= 18%, fn <= 18%, rejected <= 50%"]
    )
    def test_what_it_says_of_the_certify_samples_is_so(self, text):
        X, y = samples(500, 2)
        model = accepted(text)
        certificate = model.certificate_
        assert certificate.confusion == model.confusion(X, y)
        known = cells(certificate.confusion, 0.95)
        for cell, narrow in zip(certificate.cells, known, strict=True):
            # After several tests on the same samples an interval is wider.
            assert (cell.true, cell.answer, cell.count) == (
                narrow.true,
                narrow.answer,
                narrow.count,
            )
            assert cell.low <= narrow.low <= narrow.high <= cell.high
        assert (certificate.cells == known) == (certificate.route == "order statistics")
        assert certificate.preference == certificate.asked == text
        assert certificate.promises == promises(
            Preference(text), certificate.confusion, certificate.promises[0].delta
        )
        assert certificate.issued == date.today().isoformat()
        assert certificate.tuning.n == 300
        assert isinstance(certificate.cells[0], Cell)
        ordered = "order statistics" if text == "fp <= 10%" else "tested path"
        assert certificate.route == ordered
        assert Preference(text).met(certificate.confusion)

    def test_a_count_is_promised_as_its_rate_and_the_certificate_says_so(self):
        certificate = accepted("fp <= 15").certificate_
        n = certificate.tuning.counts[0].sum()
        assert certificate.asked == "fp <= 15"
        limit = certificate.promises[0].limit
        assert 15 / n * (1 - 1e-3) < limit <= 15 / n
        assert certificate.remarks == ("'fp <= 15' counts tuning samples; promised is its rate.",)
        assert accepted("fp <= 15%").certificate_.remarks == ()

    def test_two_promises_share_delta(self):
        promised = accepted("fp <= 25%, fn <= 25%").certificate_.promises
        assert [one.delta for one in promised] == pytest.approx([0.025, 0.025])


class TestCheck:
    model = accepted("fp <= 15%")

    def test_samples_like_the_certify_samples_raise_no_alarm(self):
        check = self.model.check(*samples(500, 7))
        assert isinstance(check, Check)
        assert bool(check) is True
        assert check.alarm is False
        assert check.confusion.n == 500

    def test_a_world_that_has_changed_does(self):
        check = self.model.check(*samples(500, 7, shift=1.0))
        assert bool(check) is False
        assert check.alarm is True
        assert "BROKEN" in str(check)

    def test_the_level_is_how_improbable_it_must_be(self):
        X, y = samples(500, 7, shift=0.1)
        (kept,) = self.model.check(X, y).promises
        assert 0 < kept.p < 1
        assert self.model.check(X, y, level=kept.p * 1.001).alarm is True
        assert self.model.check(X, y, level=kept.p * 0.999).alarm is False

    def test_rejected_samples_are_counted_as_such(self):
        model = accepted("fp <= 18%, fn <= 18%, rejected <= 50%")
        check = model.check(*samples(400, 8))
        assert check.confusion.n_rejected > 0
        assert check.promises[2].count == check.confusion.n_rejected
        assert check.promises[2].n == 400

    def test_a_model_that_promises_nothing(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        message = (
            "SteeredClassifier.check needs a certificate; this model promises nothing. "
            "Dialog.accept makes one that does."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            dialog.model.check(*samples(50, 3))


class TestRecertify:
    def test_the_decision_is_set_anew_and_the_model_stays(self):
        model = accepted("fp <= 15%")
        X, y = samples(500, 9, shift=0.7)
        new = model.recertify(X, y)
        assert new is not model
        assert new.scorer_ is model.scorer_
        assert new.decision_.high > model.decision_.high
        assert not model.check(*samples(500, 10, shift=0.7))
        assert new.check(*samples(500, 10, shift=0.7))
        assert new.certificate_.confusion == new.confusion(X, y)
        assert new.certificate_.confidence == 0.95
        assert new.certificate_.preference == model.certificate_.preference
        assert new.certificate_.tuning == model.certificate_.tuning
        np.testing.assert_array_equal(new.predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize("backwards", [False, True])
    def test_the_samples_it_was_set_on_are_spent(self, backwards):
        X, y = samples(500, 2)
        given = (X[::-1], y[::-1]) if backwards else (X, y)
        with pytest.raises(PromiseError, match="the promise was set on these"):
            accepted("fp <= 15%").recertify(*given)

    def test_the_decision_is_the_one_that_accepting_on_these_samples_sets(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        dialog.prefer("fp <= 15%", ways=["move"])
        fresh = samples(500, 9)
        anew = accepted("fp <= 15%").recertify(*fresh)
        assert anew.decision_ == dialog.accept(*fresh).decision_

    def test_at_another_confidence(self):
        model = accepted("fp <= 15%")
        surer = model.recertify(*samples(500, 9), confidence=0.999)
        model = model.recertify(*samples(500, 9))
        assert surer.certificate_.confidence == 0.999
        assert surer.certificate_.delta == pytest.approx(0.001)
        assert surer.decision_.high > model.decision_.high

    def test_a_path_is_tested_anew(self):
        model = accepted("precision >= 75%")
        new = model.recertify(*samples(500, 12))
        assert new.certificate_.route == "tested path"
        assert new.certificate_.confusion.n == 500
        assert Preference("precision >= 75%").met(new.certificate_.confusion)

    def test_too_few(self):
        model = accepted("fp <= 15%")
        with pytest.raises(PromiseError, match="needs 19 samples of 'ham'"):
            model.recertify(*samples(12, 3))

    @pytest.mark.parametrize("text", ["fp <= 15", "fp <= 15%"])
    def test_notes_are_said_once(self, text):
        twice = accepted(text).recertify(*samples(500, 9)).recertify(*samples(500, 10))
        notes = twice.certificate_.remarks
        assert len(set(notes)) == len(notes)
        assert sum("first issued" in note for note in notes) == 1

    def test_labels_must_be_one_for_each_sample(self):
        model = accepted("fp <= 15%")
        X, y = samples(300, 3)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.recertify(X, y[:-1])
        with pytest.raises(ValueError, match="'eggs' is not one of the classes"):
            model.recertify(X, np.where(y == "ham", "eggs", y))

    def test_what_is_no_confidence(self):
        model = accepted("fp <= 15%")
        with pytest.raises(ValueError, match=r"needs confidence to be a number in \(0, 1\); got 2"):
            model.recertify(*samples(300, 3), confidence=2)


class TestCard:
    def test_it_tells_the_promise_and_the_evidence(self):
        model = accepted("fp <= 18%, fn <= 18%, rejected <= 50%")
        card, certificate = model.model_card(), model.certificate_
        for promise in certificate.promises:
            assert f"- {promise}" in card
        for true in ("ham", "spam"):
            (row,) = [
                line
                for line in card.split("## Tuning")[0].splitlines()
                if line.startswith(f"| true {true} |")
            ]
            told = [cell for cell in certificate.cells if cell.true == true]
            for shown, cell in zip(row.split(" | ")[1:], told, strict=True):
                assert shown.startswith(f"{cell.count} ({cell.low:.1%} to {cell.high:.1%})")
        assert f"`{model.reject_label_}`" in card

    def test_a_model_without_a_promise_says_so(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        assert "None: this model was not certified." in dialog.model.model_card()


class TestWhatItTells:
    def test_what_the_promise_costs_is_told_on_the_certify_samples(self):
        model = accepted("fp <= 10%")
        certificate = model.certificate_
        assert certificate.start.counts.sum(axis=1).tolist() == (
            certificate.confusion.counts.sum(axis=1).tolist()
        )
        for change in certificate.changes:
            assert change.before == certificate.start[change.true, change.answer]
            assert change.after == certificate.confusion[change.true, change.answer]
            assert str(change) in str(certificate)

    def test_a_model_that_answers_all_alike_says_so(self):
        model = accepted("fn <= 1.5%")
        certificate = model.certificate_
        counts = certificate.confusion.counts.sum(axis=0)
        told = any("it calls every certify sample" in one for one in certificate.remarks)
        assert told == (counts.max() == certificate.confusion.n)

    def test_too_few_samples_tell_nothing(self):
        X, y = samples(500, 2)
        model = accepted("fp <= 10%")
        assert "too few samples to tell" in str(model.check(X[:1], y[:1]))
        assert "too few samples" not in str(model.check(X, y))
