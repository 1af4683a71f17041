"""Groups of rows, such as the visits of a patient: how they are split, certified and checked."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.hospital import FEATURES, draw_visits

from margrave.steer import Dialog, GuaranteeError, SplitError, SteeredClassifier
from margrave.steer._split import split_rows

VISITS = draw_visits(np.random.default_rng(0), 600)
X, Y = VISITS[FEATURES], VISITS["outcome"].to_numpy()
PATIENT, DAY = VISITS["patient"].to_numpy(), VISITS["day"].to_numpy()
ILL = Y == "disease"
BOTH = [{"groups": PATIENT}, {"groups": PATIENT, "time": DAY}]
HOW = pytest.mark.parametrize("more", BOTH, ids=["groups", "groups and time"])


def start(guarantee=None, **more):
    """Start a dialog with one fast member."""
    return Dialog.from_data(
        X,
        Y,
        committee=LogisticRegression(),
        guarantee=guarantee,
        positive="disease",
        random_state=0,
        **more,
    )


def rows_of(dialog):
    """The rows of the table in the tuning set, and in the certification set."""
    return dialog._data.at, dialog._acceptances.certification_set.at


class TestRowsOfGroupsAndClasses:
    @HOW
    @pytest.mark.parametrize("guarantee", ["fn <= 10%", "fp <= 10%", "fn <= 20%, fp <= 30%"])
    def test_a_limit_within_a_class_has_one_row_of_each_patient_and_class(self, guarantee, more):
        dialog = start(guarantee, **more)
        tuning, certify = rows_of(dialog)
        pairs = {(PATIENT[at], Y[at]) for at in certify}
        assert len(pairs) == len(certify) == dialog.sizes.certify
        assert not set(PATIENT[certify]) & set(PATIENT[tuning])
        assert len(set(PATIENT[certify])) < len(pairs)  # some patients give a row of both classes
        assert dialog.sizes.certify_by_class == dialog.plan().chosen.certify_by_class
        with pytest.raises(ValueError, match="precision"):
            dialog.prefer("precision >= 50%")  # the proportions are those of no visits

    @HOW
    @pytest.mark.parametrize("guarantee", ["precision >= 50%", None])
    def test_other_limits_have_one_row_of_each_patient(self, guarantee, more):
        tuning, certify = rows_of(start(guarantee, **more))
        assert len(set(PATIENT[certify])) == len(certify) > 20
        assert not set(PATIENT[certify]) & set(PATIENT[tuning])

    def test_all_patients_with_a_class_can_be_certified_on(self):
        """Also those who are healthy at most of their visits."""
        plan = Dialog.plan_split(
            X, Y, groups=PATIENT, guarantee="fn <= 1%", positive="disease", random_state=0
        ).plan
        # No number of these patients is enough, so as many are set aside as ever are: 65 %.
        n_ill = len(set(PATIENT[ILL]))
        assert plan.chosen.certify_by_class["disease"] == round(0.65 * n_ill)

    def test_patients_serve_both_classes_where_they_can(self):
        """The fewest patients leave the training set."""
        _, certify = rows_of(start("fn <= 20%, fp <= 10%", groups=PATIENT))
        found = []
        for label in ("disease", "healthy"):
            drawn, available = (
                set(PATIENT[at])
                for at in (certify[Y[certify] == label], ~ILL if label == "healthy" else ILL)
            )
            found.append((len(drawn) / len(available), drawn))
        (low, fewer), (high, more) = sorted(found, key=lambda one: one[0])
        assert low < 0.8 * high
        has_both = set(PATIENT[ILL]) & set(PATIENT[~ILL])
        assert len(fewer & has_both) > 10
        assert fewer & has_both <= more

    @HOW
    def test_which_row_of_a_patient_is_drawn_at_random(self, more):
        """Else a first visit, or the most extreme one, might stand for all."""
        _, certify = rows_of(start("fn <= 10%", **more))
        earliest = VISITS.groupby(["patient", "outcome"])["day"].transform("min").to_numpy()
        latest = VISITS.groupby(["patient", "outcome"])["day"].transform("max").to_numpy()
        several = certify[(earliest < latest)[certify]]
        for ends in (earliest, latest):
            assert 0.1 < (ends == DAY)[several].mean() < 0.9

    def test_the_certificate_says_what_the_rates_are_over(self):
        notes = {}
        for guarantee, certify in (("fn <= 20%", "auto"), (None, 0.4)):
            dialog = start(guarantee, certify=certify, groups=PATIENT)
            dialog.prefer("fn <= 20%", strategies=["move"])
            notes[certify] = " ".join(dialog.accept().certificate_.notes)
        assert "group and class" in notes["auto"]
        assert "group" in notes[0.4]
        assert "group and class" not in notes[0.4]


class TestGroupsAndTime:
    @pytest.mark.parametrize("guarantee", ["fn <= 10%", "precision >= 50%", None])
    def test_certified_rows_are_the_latest_of_patients_that_are_new(self, guarantee):
        tuning, certify = rows_of(start(guarantee, groups=PATIENT, time=DAY))
        assert DAY[certify].min() > DAY[tuning].max()
        # All patients with a later row are certified on, if the class is limited at least.
        first = DAY[certify].min()
        assert set(PATIENT[first <= DAY]) == set(PATIENT[certify])

    @pytest.mark.parametrize("seed", range(3))
    def test_members_predict_later_rows_of_other_patients(self, seed):
        order = np.random.default_rng(seed).permutation(len(Y))
        y, groups, time = Y[order], PATIENT[order], DAY[order]
        parts = split_rows(y, 0.2, groups, time, seed)
        groups, time = groups[parts.build], time[parts.build]
        held = np.concatenate([at for _, at in parts.folds])
        assert len(set(held)) == len(held) > 0.4 * len(parts.build)
        for training, at in parts.folds:
            assert time[training].max() < time[at].min()
            assert not set(groups[training]) & set(groups[at])

    def test_without_groups_of_several_rows_it_is_the_split_by_time(self):
        alone = np.arange(len(Y))
        both, by_time = (split_rows(Y, 0.2, groups, DAY, 0) for groups in (alone, None))
        assert both.build.tolist() == by_time.build.tolist()
        assert both.certify.tolist() == by_time.certify.tolist()
        for one, other in zip(both.folds, by_time.folds, strict=True):
            assert [at.tolist() for at in one] == [at.tolist() for at in other]

    def test_a_separate_tuning_set(self):
        dialog = start("fn <= 20%", groups=PATIENT, time=DAY, tune=0.3)
        tuning, certify = rows_of(dialog)
        assert DAY[certify].min() > DAY[tuning].max()
        parts = split_rows(Y, 0.2, PATIENT, DAY, 0, tune=0.3)
        training, tuning = parts.build[parts.training], parts.build[parts.tuning]
        assert DAY[training].max() < DAY[tuning].min()
        assert not set(PATIENT[training]) & set(PATIENT[tuning])
        sizes = dialog.sizes
        assert sizes.train + sizes.tune + sizes.certify + sizes.unused == len(Y)

    @pytest.mark.parametrize("guarantee", [None, "fn <= 10%"])
    def test_groups_that_last_until_the_end_are_refused(self, guarantee):
        machine, hour = np.arange(2000) % 10, np.arange(2000) // 10
        rng = np.random.default_rng(0)
        with pytest.raises(SplitError, match="groups") as caught:
            Dialog.from_data(
                rng.normal(size=(2000, 2)),
                rng.integers(0, 2, 2000),
                groups=machine,
                time=hour,
                guarantee=guarantee,
                committee=LogisticRegression(),
            )
        assert caught.value.code == "time"


@pytest.fixture(scope="module")
def model():
    """A model certified for one row of each patient and class."""
    dialog = start("fn <= 15%", groups=PATIENT)
    dialog.prefer("fn <= 15%", strategies=["move"])
    return dialog.accept()


@pytest.fixture(scope="module")
def later():
    """Visits of other patients."""
    return draw_visits(np.random.default_rng(1), 300)


class TestChecks:
    def test_it_counts_one_row_of_each_patient_and_class(self, model, later):
        found = model.check(later[FEATURES], later["outcome"], later["patient"])
        pairs = later.groupby("outcome")["patient"].nunique()
        assert found.confusion.counts.sum(axis=1).tolist() == [pairs["disease"], pairs["healthy"]]
        assert f"{pairs.sum()}" in str(found)
        without = model.check(later[FEATURES], later["outcome"])
        assert without.confusion.n == len(later)
        assert "groups" in str(without)  # the certificate counts them, this check does not

    def test_which_rows_count_depends_on_the_rows_only(self, model, later):
        found = model.check(later[FEATURES], later["outcome"], later["patient"])
        for seed in range(3):
            other = later.sample(frac=1, random_state=seed)
            again = model.check(other[FEATURES], other["outcome"], other["patient"].to_list())
            assert again.confusion == found.confusion

    def test_rows_of_a_patient_have_equal_chances(self, model):
        """Among many patients with the same two visits, about half are judged by either."""
        two = [[9.0, 9.0], [-9.0, -9.0]]
        rows = np.concatenate([two] * 1000) + np.random.default_rng(0).normal(size=(2000, 2)) / 9
        rows = pd.DataFrame(rows, columns=FEATURES)
        found = model.check(rows, np.full(2000, "disease"), np.repeat(np.arange(1000), 2))
        assert found.confusion.n == 1000
        assert found.guarantees[0].count == pytest.approx(500, abs=75)

    def test_a_model_loaded_from_a_file_counts_the_same(self, model, later, tmp_path):
        model.save(tmp_path / "model.skops")
        loaded = SteeredClassifier.load(tmp_path / "model.skops")
        rows = later[FEATURES], later["outcome"], later["patient"]
        assert loaded.check(*rows).confusion == model.check(*rows).confusion

    def test_copies_count_once(self, model, later):
        rows = later[FEATURES], later["outcome"]
        once = model.check(*rows)
        twice = model.check(*(pd.concat([one, one]) for one in rows))
        assert twice.confusion.n == once.confusion.n == len(later)
        assert twice.guarantees == once.guarantees
        assert str(2 * len(later)) in str(twice).replace(",", "")

    def test_independent_rows_count_each(self, later):
        dialog = start("fn <= 15%", groups=PATIENT, duplicates="independent")
        dialog.prefer("fn <= 15%", strategies=["move"])
        rows = [pd.concat([one, one]) for one in (later[FEATURES], later["outcome"])]
        assert dialog.accept().check(*rows).confusion.n == 2 * len(later)

    def test_a_certificate_over_rows_is_checked_on_one_row_of_each_group(self, later):
        dialog = start("fn <= 15%")
        dialog.prefer("fn <= 15%", strategies=["move"])
        found = dialog.accept().check(later[FEATURES], later["outcome"], later["patient"])
        assert found.confusion.n == later["patient"].nunique()

    @pytest.mark.parametrize("groups", [[1, 2], [None] * 3])
    def test_groups_that_do_not_fit(self, model, later, groups):
        with pytest.raises(ValueError, match=r"SteeredClassifier\.check\b.*\bgroups\b"):
            model.check(later[FEATURES][:3], later["outcome"][:3], groups)


class TestCertificationSetsOfOnesOwn:
    @pytest.mark.parametrize(
        ("preference", "counts"), [("fn <= 25%", "pairs"), ("accuracy >= 60%", "groups")]
    )
    def test_one_row_of_each_group_or_class_counts(self, preference, counts, later):
        dialog = Dialog(LogisticRegression().fit(X, Y), X[:500], Y[:500], positive="disease")
        dialog.prefer(preference, strategies=["move"])
        rows, groups = (later[FEATURES], later["outcome"]), later["patient"]
        expected = dialog.expected_certificate(*rows, groups=groups)
        model = dialog.accept(*rows, groups=groups)
        assert expected.probability > 0.5
        pairs = later.groupby("outcome")["patient"].nunique()
        used = model.certificate_.confusion.counts.sum(axis=1)
        if counts == "pairs":  # of a limited class some may be left out
            assert used[0] <= pairs["disease"]
            assert used[1] == pairs["healthy"]
        else:
            assert used.sum() == later["patient"].nunique()
        assert any("group" in note for note in model.certificate_.notes)
        found = model.check(later[FEATURES] + 0.01, later["outcome"], groups)
        assert found.confusion.n == (pairs.sum() if counts == "pairs" else groups.nunique())

    def test_recertify_counts_so_too(self, model, later):
        new = model.recertify(later[FEATURES], later["outcome"], later["patient"])
        n = later.groupby("outcome")["patient"].nunique()
        used = new.certificate_.confusion.counts.sum(axis=1)
        assert used[0] <= n["disease"] < (later["outcome"] == "disease").sum()
        assert used[1] == n["healthy"]
        assert any("group and class" in note for note in new.certificate_.notes)

    def test_groups_need_samples(self):
        dialog = start("fn <= 15%", groups=PATIENT)
        dialog.prefer("fn <= 15%", strategies=["move"])
        with pytest.raises(ValueError, match=r"Dialog\.accept\b.*\bgroups\b"):
            dialog.accept(groups=PATIENT)
        assert not dialog.accepted

    def test_too_few_groups_are_refused(self, later):
        """Although there are enough rows."""
        dialog = Dialog(LogisticRegression().fit(X, Y), X[:500], Y[:500], positive="disease")
        dialog.prefer("fn <= 20%", strategies=["move"])
        rows, clinic = (later[FEATURES], later["outcome"]), np.arange(len(later)) % 10
        with pytest.raises(GuaranteeError, match=r"\b10\b"):
            dialog.accept(*rows, groups=clinic)
