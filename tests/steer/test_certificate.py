"""Certificates: sentences, evidence, whether they still hold, and setting them again."""

import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from tests.examples import few

from margrave import Confusion, Preference
from margrave.steer import Cell, Check, Dialog, Guarantee, GuaranteeError
from margrave.steer._certificate import (
    Certificate,
    check_guarantees,
    describe_bound,
    list_changes,
    make_cells,
    make_guarantees,
)

TWO = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])
THREE = Confusion([[8, 1, 1, 0], [0, 9, 1, 2], [2, 0, 8, 0]], classes=["ash", "birch", "cedar"])


def certificate_of(preference, matrix, confidence=0.95):
    """A certificate as it is issued, on a matrix."""
    delta = 1 - confidence
    return Certificate(
        preference=str(preference),
        requested=str(preference),
        goal="fewest fn",
        confidence=confidence,
        delta=delta,
        number=1,
        route="order statistics",
        strategy="move",
        guarantees=make_guarantees(preference, matrix, delta),
        confusion=matrix,
        cells=make_cells(matrix, confidence),
        tuning=matrix,
        issued="2024-05-06",
        samples="these",
        notes=("groups were kept together.",),
    )


def numbers(text):
    return [float(one) for one in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def names_in(text, matrix):
    """Classes in the order in which a text names them first."""
    return list(dict.fromkeys(re.findall(rf"\b(?:{'|'.join(matrix.classes)})\b", text)))


def in_words(text, matrix):
    return describe_bound(Preference(text).bounds[0], matrix)


def test_classes_that_look_like_numbers_are_quoted_and_counts_have_separators():
    digits = Confusion([[2954, 100], [1200, 3000]], classes=[0, 1])
    sentence = in_words("fp <= 100", digits)
    assert re.findall(r"'\d'|[\d,]+", sentence) == ["100", "3,054", "'0'", "'1'"]
    better = Confusion([[3054, 0], [2200, 2000]], classes=[0, 1])
    texts = [str(change) for change in list_changes(digits, better)]
    assert [re.findall(r"'\d'", text) for text in texts] == [["'0'", "'1'"], ["'1'", "'0'"]]
    assert re.findall(r"[\d,]*,[\d,]*", texts[1]) == ["1,200", "2,200", "1,000"]
    found = make_guarantees(Preference("fn <= 50%"), digits, 0.05)[0]
    assert "1,200" in str(found)
    assert "4,200" in str(found)


class TestSentences:
    """They have the limit, and name true classes before predicted ones."""

    @pytest.mark.parametrize(
        ("text", "limit", "named"),
        [
            ("fp <= 5%", 5, ["ham", "spam"]),
            ("fp(ham) <= 5%", 5, ["spam", "ham"]),
            ("fn <= 0.5%", 0.5, ["spam", "ham"]),
            ("fn(ham) <= 12.5%", 12.5, ["ham", "spam"]),
            ("recall >= 90%", 90, ["spam"]),
            ("recall(ham) <= 90%", 90, ["ham"]),
            ("correct(ham) >= 90%", 90, ["ham"]),
            ("errors(spam -> ham) <= 5%", 5, ["spam", "ham"]),
            ("errors <= 5%", 5, []),
            ("alarms <= 3%", 3, ["spam"]),
            ("alarms(ham) >= 3%", 3, ["ham"]),
            ("rejected <= 5%", 5, []),
            ("rejected(ham) <= 5%", 5, ["ham"]),
            ("precision >= 80%", 80, ["spam"]),
            ("precision(ham) >= 80%", 80, ["ham"]),
            ("accuracy >= 90%", 90, []),
        ],
    )
    def test_every_word_with_two_classes(self, text, limit, named):
        words = in_words(text, TWO)
        assert numbers(words) == [limit]
        assert names_in(words, TWO) == named

    @pytest.mark.parametrize(
        ("text", "limit", "named"),
        [
            ("fp(ash) <= 5%", 5, ["birch", "cedar", "ash"]),
            ("fn(ash) <= 5%", 5, ["ash", "birch", "cedar"]),
            ("recall(birch) >= 90%", 90, ["birch"]),
            ("correct(birch) >= 90%", 90, ["birch"]),
            ("errors(ash -> cedar) <= 5%", 5, ["ash", "cedar"]),
            ("errors <= 5%", 5, []),
            ("alarms(cedar) <= 3%", 3, ["cedar"]),
            ("rejected <= 5%", 5, []),
            ("rejected(cedar) <= 5%", 5, ["cedar"]),
            ("precision(birch) >= 80%", 80, ["birch"]),
            ("accuracy >= 90%", 90, []),
        ],
    )
    def test_every_word_with_three_classes(self, text, limit, named):
        words = in_words(text, THREE)
        assert numbers(words) == [limit]
        assert names_in(words, THREE) == named

    def test_bounds_have_the_same_sentence_if_they_mean_the_same(self):
        meanings = [
            ["fp", "fn(ham)", "errors(ham -> spam)"],
            ["fn", "fp(ham)", "errors(spam -> ham)"],
            ["recall", "correct(spam)"],
            ["recall(ham)", "correct(ham)"],
            ["accuracy", "correct"],
            ["errors"],
            ["precision"],
            ["precision(ham)"],
            ["alarms"],
            ["alarms(ham)"],
            ["rejected"],
            ["rejected(ham)"],
        ]
        stated = [
            {in_words(f"{word} {sign} 5%", TWO) for word in words}
            for words in meanings
            for sign in ("<=", ">=")
        ]
        assert [len(one) for one in stated] == [1] * len(stated)
        assert len(set.union(*stated)) == len(stated)

    @pytest.mark.parametrize("text", ["accuracy >= 90%", "correct >= 90%"])
    @pytest.mark.parametrize("matrix", [TWO, THREE])
    def test_accuracy_is_a_share_of_all_samples_not_of_the_answers(self, text, matrix):
        """Rates keep rejected samples in the base."""
        (guarantee,) = make_guarantees(Preference(text), matrix, 0.05)
        assert (guarantee.count, guarantee.n) == (np.trace(matrix.counts), matrix.n)

    def test_the_positive_class_is_meant_where_none_is_named(self):
        matrix = Confusion(THREE.counts, THREE.classes, positive="cedar")
        assert names_in(in_words("fp <= 5%", matrix), matrix) == ["ash", "birch", "cedar"]

    @given(st.integers(0, 100_000))
    def test_the_share_is_stated_as_it_is(self, thousandths):
        """To all its digits: 'recall >= 99.996%' is not 'at least 100 %'."""
        limit = f"{thousandths // 1000}.{thousandths % 1000:03d}"
        assert numbers(in_words(f"recall >= {limit}%", TWO)) == [float(limit)]


class TestPromises:
    def test_counts_are_those_of_the_matrix(self):
        wanted = Preference("fp <= 10%, recall >= 70%, precision >= 80%, rejected <= 9%")
        found = make_guarantees(wanted, TWO, 0.01)
        assert [(one.count, one.n) for one in found] == [(6, 100), (40, 50), (40, 46), (6, 150)]
        assert [one.limit for one in found] == [0.1, 0.7, 0.8, 0.09]
        assert [one.at_most for one in found] == [True, False, False, True]
        assert {one.delta for one in found} == {0.01}
        assert [one.bound for one in found] == [str(bound) for bound in wanted.bounds]
        assert found[0].rate == 0.06

    def test_as_text(self):
        (found,) = make_guarantees(Preference("fp <= 10%, rejected <= 9%"), TWO, 0.01)[:1]
        assert found.sentence in str(found)
        assert numbers(str(found).replace(found.sentence, "")) == [6, 100, 6.0]

    def test_of_no_samples_there_is_no_rate(self):
        assert np.isnan(Guarantee("b", "s", 0.1, True, 0, 0, 0.05).rate)


class TestCells:
    @pytest.mark.core
    @few(4)
    @given(st.lists(st.integers(0, 40), min_size=12, max_size=12), st.sampled_from([0.8, 0.95]))
    def test_intervals_are_clopper_and_pearsons_about_the_share(self, counts, level):
        matrix = Confusion(np.reshape(counts, (3, 4)), classes=["a", "b", "c"])
        found = make_cells(matrix, level)
        places = [(true, answer) for true in "abc" for answer in ("a", "b", "c", None)]
        assert [(cell.true, cell.predicted) for cell in found] == places
        for cell in found:
            assert cell.count == matrix[cell.true, cell.predicted]
            assert cell.n == matrix.counts["abc".index(cell.true)].sum()
            if cell.n == 0:
                assert (cell.low, cell.high) == (0, 1)
                continue
            exact = binomtest(cell.count, int(cell.n)).proportion_ci(level, "exact")
            assert (cell.low, cell.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
            assert cell.low <= cell.count / cell.n <= cell.high


def with_guarantees(check, **changes):
    """A check whose guarantees are changed."""
    return replace(check, guarantees=tuple(replace(kept, **changes) for kept in check.guarantees))


class TestChecking:
    wanted = Preference("fp <= 10%, recall >= 70%, rejected <= 50%")
    certificate = certificate_of(wanted, TWO)

    @pytest.mark.core
    @given(st.lists(st.integers(0, 60), min_size=6, max_size=6), st.floats(0.001, 0.5))
    def test_an_alarm_is_a_count_too_improbable_for_the_guarantee(self, counts, level):
        matrix = Confusion(np.reshape(counts, (2, 3)), classes=["ham", "spam"])
        check = check_guarantees(self.certificate, self.wanted, matrix, level)
        sizes = matrix.counts.sum(axis=1)
        amounts = [matrix["ham", "spam"], matrix["spam", "spam"], matrix.n_rejected]
        bases = [sizes[0], sizes[1], sizes.sum()]
        sides = ["greater", "less", "greater"]
        for kept, count, n, limit, side in zip(
            check.guarantees, amounts, bases, [0.1, 0.7, 0.5], sides, strict=True
        ):
            p = binomtest(int(count), int(n), limit, alternative=side).pvalue if n else 1.0
            assert (kept.count, kept.n) == (count, n)
            assert kept.p == pytest.approx(p, rel=1e-9)
            assert kept.alarm is (kept.p < level / 3)
        assert check.alarm is any(kept.alarm for kept in check.guarantees)
        assert bool(check) is not check.alarm
        assert check.confusion == matrix

    def test_an_alarm_is_raised_falsely_no_more_often_than_the_level_says(self):
        """The guarantee just holds: 10 % of ham is predicted spam, 70 % of spam is."""
        rng, n_alarms, n_checks = np.random.default_rng(0), 0, 400
        for _ in range(n_checks):
            ham, spam = rng.binomial(300, 0.1), rng.binomial(200, 0.7)
            matrix = Confusion([[300 - ham, ham, 0], [200 - spam, spam, 0]], ["ham", "spam"])
            n_alarms += check_guarantees(self.certificate, self.wanted, matrix, 0.1).alarm
        assert binomtest(n_alarms, n_checks, 0.1, alternative="greater").pvalue > 1e-4
        assert n_alarms > 5

    def test_a_guarantee_that_is_plainly_broken(self):
        matrix = Confusion([[50, 50, 0], [10, 90, 0]], ["ham", "spam"])
        check = check_guarantees(self.certificate, self.wanted, matrix, 0.05)
        assert not check
        assert [kept.alarm for kept in check.guarantees] == [True, False, False]
        lines = str(check).splitlines()
        quiet = str(with_guarantees(check, alarm=False)).splitlines()
        for kept, line, without in zip(check.guarantees, lines, quiet, strict=True):
            assert kept.guarantee.sentence in line
            assert str(kept.count) in line
            assert f"{kept.p:.2g}" in line
            assert (line != without) is kept.alarm

    def test_no_samples_of_a_class_say_nothing_of_it(self):
        matrix = Confusion([[0, 0, 0], [1, 9, 0]], ["ham", "spam"])
        check = check_guarantees(self.certificate, self.wanted, matrix, 0.05)
        assert check
        assert check.guarantees[0].p == 1


class TestAsText:
    def test_all_of_it(self):
        wanted = Preference("fp <= 10%, recall >= 70%, rejected <= 50%")
        certificate = replace(certificate_of(wanted, TWO), number=77)
        stated = str(certificate)
        assert len(certificate.guarantees) == 3
        for fact in (
            "0.95",
            *map(str, certificate.guarantees),
            str(TWO.n),
            certificate.route,
            "77",
            *str(TWO).splitlines(),
            "groups were kept together.",
        ):
            assert fact in stated

    @pytest.mark.parametrize("confidence", [0.99, 0.999, 0.99999, 0.999999])
    def test_a_confidence_is_never_stated_as_certainty(self, confidence):
        stated = str(certificate_of(Preference("fp <= 10%, rejected <= 9%"), TWO, confidence))
        shown = float(re.search(r"\b0\.9+\b", stated).group())
        assert shown == pytest.approx(confidence, abs=(1 - confidence) / 10)


def samples(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 1.5 * y[:, None] + shift * (y == 0)[:, None]
    return X, np.where(y == 1, "spam", "ham")


MODEL = LogisticRegression().fit(*samples(100, 0))


def accepted(text, strategies=("move", "reject"), **candidates):
    dialog = Dialog(MODEL, *samples(300, 1))
    dialog.prefer(text, strategies=list(strategies))
    return dialog.accept(*samples(500, 2), **candidates)


class TestIssued:
    @pytest.mark.parametrize(
        "text", ["fp <= 10%", "precision >= 75%", "fp <= 18%, fn <= 18%, rejected <= 50%"]
    )
    def test_what_it_says_of_the_certify_samples_is_so(self, text):
        X, y = samples(500, 2)
        model = accepted(text)
        certificate = model.certificate_
        whole = model.confusion(X, y)
        if text == "fp <= 10%":  # fewer samples of the limited class allow as many errors
            assert certificate.confusion["ham", "spam"] <= whole["ham", "spam"]
            assert certificate.confusion.counts[0].sum() < whole.counts[0].sum()
            assert certificate.confusion.counts[1].tolist() == whole.counts[1].tolist()
            unused = whole.n - certificate.confusion.n
            assert any(unused in numbers(one) for one in certificate.remarks)
        else:
            assert certificate.confusion == whole
        known = make_cells(certificate.confusion, 0.95)
        for cell, narrow in zip(certificate.cells, known, strict=True):
            # After several tests on the same samples an interval is wider.
            assert (cell.true, cell.predicted, cell.count) == (
                narrow.true,
                narrow.predicted,
                narrow.count,
            )
            assert cell.low <= narrow.low <= narrow.high <= cell.high
        ends, narrow = (
            [(cell.low, cell.high) for cell in found] for found in (certificate.cells, known)
        )
        assert np.allclose(ends, narrow, rtol=1e-9) == (certificate.route == "order statistics")
        assert certificate.preference == certificate.requested == text
        assert certificate.guarantees == make_guarantees(
            Preference(text), certificate.confusion, certificate.guarantees[0].delta
        )
        assert certificate.issued == date.today().isoformat()
        assert certificate.tuning.n == 300
        assert isinstance(certificate.cells[0], Cell)
        if text.count("=") == 1:
            ordered = "order statistics" if text == "fp <= 10%" else "tested path"
            assert certificate.route == ordered
        assert Preference(text).met(certificate.confusion)

    def test_a_count_is_guaranteed_as_its_rate_and_the_certificate_says_so(self):
        certificate = accepted("fp <= 15").certificate_
        n = certificate.tuning.counts[0].sum()
        assert certificate.requested == "fp <= 15"
        limit = certificate.guarantees[0].limit
        assert 15 / n * (1 - 1e-3) < limit <= 15 / n
        assert any("fp <= 15" in remark for remark in certificate.remarks)
        assert not any("fp" in one for one in accepted("fp <= 15%").certificate_.remarks)

    def test_two_guarantees_share_delta(self):
        guaranteed = accepted("fp <= 25%, fn <= 25%").certificate_.guarantees
        assert [one.delta for one in guaranteed] == pytest.approx([0.025, 0.025])


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
        assert str(check) != str(with_guarantees(check, alarm=False))

    def test_the_level_is_how_improbable_it_must_be(self):
        X, y = samples(500, 7, shift=0.1)
        (kept,) = self.model.check(X, y).guarantees
        assert 0 < kept.p < 1
        assert self.model.check(X, y, level=kept.p * 1.001).alarm is True
        assert self.model.check(X, y, level=kept.p * 0.999).alarm is False

    def test_rejected_samples_are_counted_as_such(self):
        model = accepted("fp <= 18%, fn <= 18%, rejected <= 50%")
        check = model.check(*samples(400, 8))
        assert check.confusion.n_rejected > 0
        assert check.guarantees[2].count == check.confusion.n_rejected
        assert check.guarantees[2].n == 400

    def test_a_model_that_guarantees_nothing(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        with pytest.raises(ValueError, match=r"SteeredClassifier\.check.*Dialog\.accept"):
            dialog.model.check(*samples(50, 3))


class TestRecertify:
    def test_the_decision_is_set_again_and_the_model_stays(self):
        model = accepted("fp <= 15%")
        X, y = samples(500, 9, shift=0.7)
        new = model.recertify(X, y)
        assert new is not model
        assert new.scorer_ is model.scorer_
        assert new.decision_.high > model.decision_.high
        assert not model.check(*samples(500, 10, shift=0.7))
        assert new.check(*samples(500, 10, shift=0.7))
        whole = new.confusion(X, y)
        assert new.certificate_.confusion.counts[1].tolist() == whole.counts[1].tolist()
        assert (new.certificate_.confusion.counts <= whole.counts).all()
        assert new.certificate_.confidence == 0.95
        assert new.certificate_.preference == model.certificate_.preference
        assert new.certificate_.tuning == model.certificate_.tuning
        np.testing.assert_array_equal(new.predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize("backwards", [False, True])
    def test_the_samples_it_was_set_on_are_used_up(self, backwards):
        X, y = samples(500, 2)
        given = (X[::-1], y[::-1]) if backwards else (X, y)
        with pytest.raises(GuaranteeError, match=r"SteeredClassifier\.recertify"):
            accepted("fp <= 15%").recertify(*given)

    def test_the_decision_is_the_one_that_accepting_on_these_samples_sets(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        dialog.prefer("fp <= 15%", strategies=["move"])
        fresh = samples(500, 9)
        again = accepted("fp <= 15%").recertify(*fresh)
        known = dialog.accept(*fresh).decision_
        found = again.decision_
        assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=1e-9)

    def test_at_another_confidence(self):
        model = accepted("fp <= 15%")
        surer = model.recertify(*samples(500, 9), confidence=0.999)
        model = model.recertify(*samples(500, 9))
        assert surer.certificate_.confidence == 0.999
        assert surer.certificate_.delta == pytest.approx(0.001)
        assert surer.decision_.high > model.decision_.high

    def test_a_path_is_tested_again(self):
        model = accepted("precision >= 75%")
        new = model.recertify(*samples(500, 12))
        assert new.certificate_.route == "tested path"
        assert new.certificate_.confusion.n == 500
        assert Preference("precision >= 75%").met(new.certificate_.confusion)

    def test_too_few(self):
        model = accepted("fp <= 15%")
        with pytest.raises(GuaranteeError, match=r"\b19\b.*\bham\b"):
            model.recertify(*samples(12, 3))

    @pytest.mark.parametrize("text", ["fp <= 15", "fp <= 15%"])
    def test_notes_are_said_once(self, text):
        twice = accepted(text).recertify(*samples(500, 9)).recertify(*samples(500, 10))
        notes = twice.certificate_.remarks
        assert len(set(notes)) == len(notes)
        assert sum(twice.certificate_.renews in note for note in notes) == 1

    def test_labels_must_be_one_for_each_sample(self):
        model = accepted("fp <= 15%")
        X, y = samples(300, 3)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.recertify(X, y[:-1])
        with pytest.raises(ValueError, match="'eggs'"):
            model.recertify(X, np.where(y == "ham", "eggs", y))

    def test_what_is_no_confidence(self):
        model = accepted("fp <= 15%")
        with pytest.raises(ValueError, match=r"\bconfidence\b.*\b2\b"):
            model.recertify(*samples(300, 3), confidence=2)


class TestCard:
    def test_it_tells_the_guarantee_and_the_evidence(self):
        model = accepted("fp <= 18%, fn <= 18%, rejected <= 50%")
        card, certificate = model.model_card(), model.certificate_
        for guarantee in certificate.guarantees:
            assert str(guarantee) in card
        table = [line for line in card.splitlines() if line.startswith("|")]
        for true, row in zip(("ham", "spam"), table[2:4], strict=True):
            _, label, *shown, _ = row.split("|")
            assert re.search(rf"\b{true}\b", label)
            stated = [cell for cell in certificate.cells if cell.true == true]
            for text, cell in zip(shown, stated, strict=True):
                percents = [round(100 * share, 1) for share in (cell.low, cell.high)]
                assert numbers(text) == [cell.count, *percents]
        assert f"`{model.reject_label_}`" in card

    def test_a_model_without_a_guarantee_has_no_evidence(self):
        dialog = Dialog(MODEL, *samples(300, 1))
        assert "|" not in dialog.model.model_card()


class TestWhatItTells:
    def test_what_the_guarantee_costs_is_measured_on_the_certification_set(self):
        model = accepted("fp <= 10%")
        certificate = model.certificate_
        assert certificate.start.counts.sum(axis=1).tolist() == (
            certificate.confusion.counts.sum(axis=1).tolist()
        )
        for change in certificate.changes:
            assert change.before == certificate.start[change.true, change.predicted]
            assert change.after == certificate.confusion[change.true, change.predicted]
            assert str(change) in str(certificate)

    def test_a_model_that_predicts_one_class_only_says_so(self):
        wanted = Preference("fn <= 10%")
        one_class = Confusion([[0, 100, 0], [0, 50, 0]], classes=["ham", "spam"])
        usual, found = (certificate_of(wanted, one) for one in (TWO, one_class))
        assert usual.useless == ()
        (reason,) = found.useless
        assert names_in(reason, one_class) == ["ham"]
        assert reason in str(found)

    def test_too_few_samples_tell_nothing(self):
        X, y = samples(500, 3)
        model = accepted("fp <= 10%")
        few, many = model.check(X[:1], y[:1]), model.check(X, y)
        assert [kept.conclusive for kept in few.guarantees] == [False]
        assert [kept.conclusive for kept in many.guarantees] == [True]
        assert str(few) != str(with_guarantees(few, conclusive=True))
