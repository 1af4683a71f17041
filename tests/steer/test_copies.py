"""Copies that are not equal in every column: with identifiers, noise, or made by oversampling."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

from margrave import datasets
from margrave.steer import Dialog, GuaranteeError, SplitError
from margrave.table import TableEncoder

DISTINCT, TIMES = 300, 4
RANDOM, AT = np.random.default_rng(7), np.arange(1500)


def draw(n, seed=0, columns=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def copied(seed=0, columns=4):
    """Return rows that occur several times, in any order, and what each one is a copy of."""
    X, y = draw(DISTINCT, seed, columns)
    of = np.random.default_rng(seed).permutation(np.tile(np.arange(DISTINCT), TIMES))
    return X[of], y[of], of


def ranks(X):
    return np.argsort(np.argsort(X, axis=0), axis=0) + 1.0


def frame(X, **columns):
    return pd.DataFrame(X).add_prefix("x").assign(**columns)


NAMES = {
    "text": lambda of: [f"row{i:05d}" for i in range(len(of))],
    "integer": lambda of: np.random.default_rng(1).permutation(len(of)),
    "time": lambda of: pd.Timestamp("2026-01-01") + pd.to_timedelta(37 * np.arange(len(of)), "s"),
    "seconds": lambda of: 1.7e9 + 0.75 * np.arange(len(of)),
    "batch": lambda of: pd.Series(of).groupby(of).cumcount().to_numpy(),
    "name of a batch": lambda of: "b" + pd.Series(of).groupby(of).cumcount().astype(str),
}


def rows_of(dialog):
    return dialog._data.at, dialog._acceptances.certification_set.at


class TestEqualButForColumns:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("own", [False, True])
    def test_copies_stay_together_and_certify_once(self, name, own):
        X, y, of = copied()
        table = frame(X, extra=NAMES[name](of))
        members = make_pipeline(TableEncoder(), GaussianNB()) if own else "qda"
        options = {"committee": members, "random_state": 0}
        if own or name != "text":  # else no member sees the column
            with pytest.raises(SplitError) as asked:
                Dialog.from_data(table, y, **options)
            assert asked.value.fields["n_equal"] == len(of) - DISTINCT
        dialog = Dialog.from_data(table, y, duplicates="near", **options)
        tuning, certify = rows_of(dialog)
        assert dialog.sizes.copies == len(of) - DISTINCT
        assert len(set(of[certify])) == len(certify) == pytest.approx(DISTINCT / 5, abs=2)
        assert not np.isin(of[certify], of[tuning]).any()

    def test_several_such_columns(self):
        X, y, of = copied()
        names = {name: make(of) for name, make in NAMES.items() if name != "seconds"}
        sizes = Dialog.plan_split(frame(X, **names), y, duplicates="near")
        assert sizes.copies == len(of) - DISTINCT

    def test_arrays(self):
        X, y, of = copied()
        for extra in (np.arange(len(of)), NAMES["batch"](of), NAMES["seconds"](of)):
            sizes = Dialog.plan_split(np.column_stack([X, extra]), y, duplicates="near")
            assert sizes.copies == len(of) - DISTINCT

    def test_the_certificate_names_the_column(self):
        X, y, of = copied()
        table = frame(X, visit=NAMES["integer"](of))
        dialog = Dialog.from_data(table, y, committee="qda", duplicates="near", random_state=0)
        dialog.prefer("fp <= 60%")
        assert any("visit" in note for note in dialog.accept().certificate_.notes)

    def test_few_with_an_identifier_are_kept_together_on_request(self):
        X, y = draw(1000)
        at = np.append(np.arange(1000), np.arange(4))
        table = np.column_stack([X[at], np.arange(1004)])
        found = [Dialog.plan_split(table, y[at], duplicates=name) for name in ("group", "near")]
        assert [sizes.copies for sizes in found] == [0, 4]

    def test_groups_answer_the_question(self):
        X, y, of = copied()
        table = np.column_stack([X, np.arange(len(of))])
        sizes = Dialog.plan_split(table, y, groups=of)
        assert sizes.certify == pytest.approx(DISTINCT / 5, abs=2)
        with pytest.raises(SplitError):
            Dialog.plan_split(table, y, groups=np.arange(len(of)) % 300)

    @pytest.mark.parametrize("numbers", [0, 1, 2])
    @pytest.mark.parametrize("levels", [50, 200, 1000, 5000])
    def test_a_category_and_its_name(self, numbers, levels):
        zipped = np.random.default_rng(0).integers(0, levels, 1500)
        values = np.random.default_rng(1).normal(size=(1500, numbers))
        table = frame(values, zip=zipped, city=[f"c{i}" for i in zipped])
        sizes = Dialog.plan_split(table, np.arange(1500) % 2, duplicates="independent")
        exact = len(table.drop_duplicates())
        assert (sizes.copies, sizes.near_copies) == (1500 - exact, 0)

    @pytest.mark.parametrize(
        "functions",
        [[np.log], [np.reciprocal], [np.sin, np.cos], [np.square, np.sin]],
        ids=["log", "reciprocal", "circle", "square and sine"],
    )
    @pytest.mark.parametrize("more", [{}, {"sex": AT % 2}, {"bmi": RANDOM.normal(size=1500)}])
    def test_a_number_and_functions_of_it(self, functions, more):
        age = np.random.default_rng(0).integers(18, 90, 1500).astype(float)
        values = np.random.default_rng(1).normal(size=(1500, 2))
        known = {f"f{i}": function(age) for i, function in enumerate(functions)}
        assert Dialog.plan_split(frame(values, age=age, **known, **more), AT % 2).copies == 0

    def test_two_times_with_decimals(self):
        X, y, of = copied(columns=5)
        start = np.cumsum(np.random.default_rng(0).random(len(of)))
        table = np.column_stack([X, start, start + np.random.default_rng(1).random(len(of))])
        assert Dialog.plan_split(table, y, duplicates="near").copies == len(of) - DISTINCT

    @pytest.mark.parametrize("times", [12, 25])
    def test_many_copies_of_each_row(self, times):
        X, y = draw(200)
        of = np.tile(np.arange(200), times)
        table = np.column_stack([X[of], np.random.default_rng(0).permutation(len(of))])
        sizes = Dialog.plan_split(table, y[of], duplicates="near")
        assert sizes.copies == len(of) - 200

    @pytest.mark.parametrize(
        "X",
        [
            RANDOM.normal(size=(500, 1)),
            RANDOM.integers(0, 2, (500, 12)),
            RANDOM.random((500, 8)) < 0.03,
            np.array(np.meshgrid(*[range(5)] * 4)).reshape(4, -1).T,
            RANDOM.integers(0, 3, (500, 4)),
            np.hstack([np.eye(8)[RANDOM.integers(0, 8, 500)] for _ in range(3)]),
            np.hstack([np.eye(8)[RANDOM.integers(0, 8, 500), 1:] for _ in range(3)]),
            np.where(RANDOM.random((500, 6)) < 0.7, np.nan, RANDOM.normal(size=(500, 6))),
            np.where(RANDOM.random((500, 6)) < 0.8, 0, RANDOM.exponential(size=(500, 6))),
        ],
        ids=[
            *("one column", "flags", "rare flags", "all combinations", "grades", "dummies"),
            *("dummies without the first", "mostly missing", "mostly zero"),
        ],
    )
    @pytest.mark.parametrize("more", ["nothing", "a number", "a row number"])
    def test_rows_that_agree_by_chance_are_different(self, X, more):
        extra = {"a number": RANDOM.normal(size=len(X)), "a row number": np.arange(len(X))}
        X = np.column_stack([X, extra[more]]) if more in extra else X.astype(float)
        sizes = Dialog.plan_split(X, np.arange(len(X)) % 2, duplicates="independent")
        assert sizes.copies == len(X) - len(np.unique(np.nan_to_num(X, nan=99), axis=0))
        assert sizes.near_copies == 0


class TestNearCopies:
    @pytest.mark.parametrize("noise", [1e-12, 0.001, 0.01])
    @pytest.mark.parametrize("columns", [4, 15])
    def test_many_are_a_question(self, noise, columns):
        X, y, of = copied(columns=columns)
        X = X + noise * np.random.default_rng(2).normal(size=X.shape)
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(X, y)
        assert asked.value.code == "many_copies"
        assert asked.value.fields["n_near"] > 0.95 * len(of)
        # Nothing is asked without a certification set, or with groups.
        assert Dialog.plan_split(X, y, certify=None).certify == 0
        assert Dialog.plan_split(X, y, groups=of).near_copies == 0

    @pytest.mark.parametrize("times", [12, 25])
    def test_many_copies_of_each_row(self, times):
        X, y = draw(200, columns=6)
        of = np.tile(np.arange(200), times)
        X = X[of] + 0.001 * np.random.default_rng(0).normal(size=(len(of), 6))
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(X, y[of])
        assert asked.value.fields["n_near"] == len(of)

    @pytest.mark.parametrize("n", [3000, 60_000])
    def test_a_rare_class_of_copies(self, n):
        """They are few among all rows, but its rates would be false."""
        X, _ = draw(n)
        at = np.append(np.arange(n), np.repeat(np.arange(12), 5))
        noise = 0.001 * np.random.default_rng(0).normal(size=(len(at), 4))
        sizes = Dialog.plan_split(X[at] + noise, at < 12)
        assert 72 <= sizes.near_copies <= 72 + n // 100
        assert sizes.certify_by_class[True] <= 12

    def test_few_are_kept_together_on_request(self):
        X, y = draw(1000)
        at = np.append(np.arange(1000), np.arange(10))
        X = X[at] + 1e-5 * np.random.default_rng(0).normal(size=(1010, 4))
        found = [Dialog.plan_split(X, y[at], duplicates=name) for name in ("group", "near")]
        assert found[0].near_copies == 0
        assert found[1].near_copies >= 20

    @pytest.mark.parametrize(
        "number",
        [
            lambda n, rng: np.arange(n) % (n // 2),
            lambda n, rng: np.maximum(np.arange(n), 1),
            lambda n, rng: np.where(np.arange(n) < 2, np.nan, np.arange(n)),
        ],
        ids=["starts again", "with a tie", "two are missing"],
    )
    @pytest.mark.parametrize("columns", [2, 4, 10])
    def test_that_differ_in_a_number(self, number, columns):
        X, y, of = copied(columns=columns)
        rng = np.random.default_rng(2)
        X = X + 0.001 * rng.normal(size=X.shape)
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(np.column_stack([X, number(len(of), rng)]), y)
        assert asked.value.fields["n_near"] > 0.95 * len(of)

    @pytest.mark.parametrize("levels", [(8, 8, 8, 4), (2, 4, 8, 16), (2, 2, 2, 50)])
    @pytest.mark.parametrize("noise", [0.01, 0.1])
    def test_measured_settings_of_all_combinations_are_different(self, levels, noise):
        X = np.array(np.meshgrid(*map(range, levels))).reshape(4, -1).T
        X = X + noise * np.random.default_rng(0).random(X.shape)
        assert Dialog.plan_split(X, np.arange(len(X)) % 2).near_copies == 0

    @pytest.mark.parametrize("levels", [(10, 10, 2, 2), (12, 12, 3), (10, 10, 6)])
    def test_runs_of_measured_and_other_settings_are_different(self, levels):
        X = np.indices(levels).reshape(len(levels), -1).T.astype(float)
        X[:, :2] += 0.01 * np.random.default_rng(0).normal(size=(len(X), 2))
        table = np.column_stack([np.arange(len(X)), X])
        assert Dialog.plan_split(table, np.arange(len(X)) % 2).near_copies == 0

    def test_that_differ_in_a_row_number_beside_one_number_and_a_time(self):
        X, y, of = copied(columns=1)
        X = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        table = frame(
            X, row=np.arange(len(of)), day=pd.Timestamp("2026-01-01") + pd.to_timedelta(of, "D")
        )
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(table, y)
        assert asked.value.fields["n_near"] > 0.95 * len(of)

    @pytest.mark.parametrize("columns", [3, 4, 15])
    def test_of_ranks(self, columns):
        X, y, of = copied(columns=columns)
        X = ranks(X + 0.001 * np.random.default_rng(2).normal(size=X.shape))
        for table in (X, X / len(X)):
            with pytest.raises(SplitError) as asked:
                Dialog.plan_split(table, y)
            assert asked.value.fields["n_near"] > 0.95 * len(of)

    @pytest.mark.parametrize("value", [1e20, 9.97e36, -1e300, np.inf])
    @pytest.mark.parametrize(
        ("where", "zeros"),
        [
            (lambda of: of[:, None] == 0, 0.0),
            (lambda of: of[:, None] == 0, 0.8),
            (lambda of: of[:, None] % 20 == 0, 0.0),
            (lambda of: of[:, None] % 3 == np.arange(25) % 3, 0.0),
        ],
        ids=["a row", "a row beside many zeros", "one of 20 rows", "a third of all numbers"],
    )
    def test_with_huge_numbers(self, value, where, zeros):
        X, y, of = copied(columns=25)
        X[(np.random.default_rng(1).random((DISTINCT, 25)) < zeros)[of]] = 0
        X *= 1 + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(np.where(where(of), value, X), y)
        assert asked.value.fields["n_near"] > 0.8 * len(of)

    @pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e307])
    def test_of_very_large_and_small_numbers(self, scale):
        X, y, _ = copied()
        X = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        with pytest.raises(SplitError):
            Dialog.plan_split(X * scale, y)

    def test_both_replies_to_the_question(self):
        X, y, of = copied()
        X = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        dialog = Dialog.from_data(X, y, committee=GaussianNB(), duplicates="near", random_state=0)
        tuning, certify = rows_of(dialog)
        assert len(set(of[certify])) == len(certify)
        assert not np.isin(of[certify], of[tuning]).any()
        assert dialog.duplicates == "near"
        dialog = Dialog.from_data(
            X, y, committee=GaussianNB(), duplicates="independent", random_state=0
        )
        assert dialog.sizes.certify == len(of) / 5
        dialog.prefer("fp <= 60%")
        assert any(f"{len(of):,}" in note for note in dialog.accept().certificate_.notes)

    def test_fewer_are_kept_together(self):
        X, y = draw(1000)
        at = np.append(np.arange(1000), np.arange(100))
        X, y = X[at] * (1 + 1e-4 * np.random.default_rng(0).normal(size=(1100, 1))), y[at]
        dialog = Dialog.from_data(X, y, committee=GaussianNB(), random_state=0)
        tuning, certify = rows_of(dialog)
        assert dialog.sizes.near_copies == pytest.approx(200, abs=10)
        assert len(set(at[certify])) == len(certify)
        assert not np.isin(at[certify], at[tuning]).any()
        dialog.prefer("fp <= 60%")
        assert len(dialog.accept().certificate_.notes) == 1

    @pytest.mark.parametrize("columns", [1, 2, 3, 6, 30])
    @pytest.mark.parametrize("kind", ["normal", "uniform", "ranks", "skewed", "rounded"])
    def test_chance(self, columns, kind):
        X, y = draw(1500, columns=columns)
        change = {
            "normal": lambda X: X,
            "uniform": norm.cdf,
            "ranks": ranks,
            "skewed": np.exp,
            "rounded": lambda X: np.round(X, 1),
        }[kind]
        assert Dialog.plan_split(change(X), y, certify=None).near_copies == 0

    @pytest.mark.parametrize("n_columns", [2, 4])
    def test_categories_are_equal_or_ignored_if_there_are_enough_numbers(self, n_columns):
        X, y, of = copied(columns=n_columns)
        words = np.random.default_rng(3).permutation(len(of)) % 7
        near = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        with pytest.raises(SplitError):
            Dialog.plan_split(frame(near, kind=[f"k{i % 7}" for i in of]), y)
        options = {"certify": None, "duplicates": "near"}
        found = Dialog.plan_split(frame(near, kind=[f"k{i}" for i in words]), y, **options)
        low, high = (1, 1) if n_columns > 2 else (0, 0.8)
        assert low <= found.near_copies / len(of) <= high

    @pytest.mark.parametrize(
        ("extra", "n_columns", "whole"),
        [
            *product(["none", "site", "flag", "batch", "name of a batch"], [4], [False, True]),
            *product(["none", "site"], [2], [False, True]),
            *product(["text", "integer", "time"], [2, 4], [False, True]),
        ],
    )
    def test_with_another_column(self, extra, n_columns, whole):
        X, y, of = copied(columns=n_columns)
        table = frame(X + 0.001 * np.random.default_rng(2).normal(size=X.shape))
        table = (1e8 * table).round().astype(int) if whole else table
        if extra != "none":
            own = {"site": lambda of: [f"s{i % 5}" for i in of], "flag": lambda of: of % 2}
            table["extra"] = {**NAMES, **own}[extra](of)
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(table, y)
        assert (asked.value.code, asked.value.fields["n_near"]) == ("many_copies", len(of))

    def test_of_numbers_whose_differences_underflow(self):
        X, y, of = copied()
        X = np.column_stack([X, 10.0 ** np.linspace(-320, 0, DISTINCT)[of]])
        assert Dialog.plan_split(X, y).copies == len(of) - DISTINCT

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_with_a_standardised_number(self, kind):
        X, y, of = copied()
        near = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        numbered = np.column_stack([near, (AT[: len(of)] - 600) / 346.4]).astype(kind)
        with pytest.raises(SplitError) as asked:
            Dialog.plan_split(numbered, y)
        assert asked.value.code == "many_copies"

    @pytest.mark.parametrize(
        "name", ["abalone", "german", "housing_bin", "pima", "segment", "spambase", "twonorm"]
    )
    def test_real_tables_are_no_question(self, name):
        try:
            X, y = datasets.load(name, return_X_y=True)
        except FileNotFoundError:
            pytest.skip(f"{name} is not in the package")
        if name == "abalone":
            y = y > np.median(y)
        assert Dialog.plan_split(X, y).certify > 0


class TestSyntheticRows:
    @staticmethod
    def oversampled(times, columns=4):
        X, y = draw(1500, columns=columns)
        y = (X[:, 0] + 0.3 * X[:, 1] > 1).astype(int)
        rare, rng = X[y == 1], np.random.default_rng(0)
        near = NearestNeighbors(n_neighbors=6).fit(rare).kneighbors(return_distance=False)
        i = np.repeat(np.arange(len(rare)), times - 1)
        step = rare[near[i, rng.integers(0, 6, len(i))]] - rare[i]
        new = rare[i] + rng.random((len(i), 1)) * step
        return np.concatenate([X, new]), np.append(y, np.ones(len(i), dtype=int))

    @pytest.mark.parametrize("times", [2, 5])
    @pytest.mark.parametrize("columns", [3, 10])
    def test_they_are_a_question(self, times, columns):
        X, y = self.oversampled(times, columns)
        for duplicates in ("group", "near"):
            with pytest.raises(SplitError) as asked:
                Dialog.plan_split(X, y, duplicates=duplicates)
            assert asked.value.code == "many_copies"
        assert Dialog.plan_split(X, y, duplicates="independent").notes

    @pytest.mark.parametrize(
        "make",
        [
            lambda z: np.column_stack([z[:, 0], 25.4 * z[:, 0], 10 * z[:, 0]]),
            lambda z: np.cumsum(np.abs(z), axis=0),
            lambda z: np.stack([np.interp(AT / 7, AT, one) for one in z.T], axis=1),
        ],
        ids=["one length in three units", "counters", "interpolated"],
    )
    def test_other_rows_on_lines_are_none(self, make):
        X = make(np.random.default_rng(0).normal(size=(1500, 4)))
        y = np.random.default_rng(1).integers(0, 2, len(X))
        assert Dialog.plan_split(X, y, duplicates="independent").notes == ()

    @pytest.mark.parametrize("columns", [3, 10])
    def test_real_rows_are_none(self, columns):
        assert Dialog.plan_split(*self.oversampled(1, columns)).notes == ()


class TestOwnCertificationSet:
    X, Y = draw(800)

    @pytest.mark.parametrize("how", ["identifier", "noise", "both"])
    @pytest.mark.parametrize("member", [GaussianNB(), "qda"])
    def test_copies_of_used_rows_are_refused(self, how, member):
        rng = np.random.default_rng(0)

        def disguise(X, start):
            if how == "both":
                X = X + 0.001 * rng.normal(size=X.shape)
            if how == "noise":
                return X + 0.001 * rng.normal(size=X.shape)
            return np.column_stack([X, start + np.arange(len(X))])

        first, again = disguise(self.X[:600], 0), disguise(self.X[:200], 600)
        new = disguise(self.X[600:], 800)
        with pytest.raises(GuaranteeError) as refused:
            Dialog.from_data(first, self.Y[:600], committee=member, certify=(again, self.Y[:200]))
        assert refused.value.code == "used_samples"
        dialog = Dialog.from_data(first, self.Y[:600], committee=member, certify=None)
        dialog.prefer("fp <= 60%")
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept(again, self.Y[:200])
        assert refused.value.code == "used_samples"
        assert dialog.accept(new, self.Y[600:]).certificate_.confusion.n > 100

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: table[table.columns[::-1]],
            lambda table: table.assign(more=1.0),
            lambda table: table.to_numpy(),
            lambda table: table.to_numpy().tolist(),
        ],
        ids=["other order", "another column", "array", "list"],
    )
    def test_columns_are_matched(self, change):
        X = self.X[:200] + 0.001 * np.random.default_rng(0).normal(size=(200, 4))
        with pytest.raises(GuaranteeError) as refused:
            Dialog.from_data(
                frame(self.X[:600]),
                self.Y[:600],
                committee="logistic",
                certify=(change(frame(X)), self.Y[:200]),
            )
        assert refused.value.code == "used_samples"

    def test_new_identifiers_do_not_make_rows_new(self):
        rows = frame(self.X, id=[f"first{i:05d}" for i in AT[:800]])
        dialog = Dialog.from_data(rows, self.Y, committee="qda", random_state=0)
        dialog.prefer("fp <= 60%")
        model = dialog.accept()
        again = rows.assign(id=[f"again{i:05d}" for i in AT[:800]])
        for use in (model.recertify, model.check):
            with pytest.raises(GuaranteeError) as refused:
                use(again, self.Y)
            assert refused.value.code == "used_samples"

    @pytest.mark.parametrize("label", [np.nan, None, 3, "other"])
    def test_labels_are_checked_first(self, label):
        y = np.where(self.Y == 1, "yes", "no").astype(object)
        own = np.append(y[601:], [label])
        with pytest.raises(ValueError, match=r"^Dialog\.from_data: y: "):
            Dialog.from_data(
                self.X[:600],
                y[:600],
                committee=GaussianNB(),
                certify=(self.X[600:], own),
                callback=lambda progress: pytest.fail("a member was trained"),
            )

    def test_a_few_copies_of_used_rows_are_left_out(self):
        noise = 0.001 * np.random.default_rng(0).normal(size=(30, 4))
        X = np.concatenate([self.X[600:], self.X[:30] + noise])
        y = np.append(self.Y[600:], self.Y[:30])
        own = Dialog.from_data(self.X[:600], self.Y[:600], committee=GaussianNB(), certify=(X, y))
        later = Dialog.from_data(self.X[:600], self.Y[:600], committee=GaussianNB(), certify=None)
        for dialog, arguments in ((own, ()), (later, (X, y))):
            dialog.prefer("fp <= 60%, fn <= 60%")
            certificate = dialog.accept(*arguments).certificate_
            assert certificate.confusion.n <= 200
            assert any("30" in note for note in certificate.notes)
        assert own.sizes.certify == 200

    def test_recertification_keeps_copies_together(self):
        X, y, _ = copied()
        model = Dialog.from_data(
            self.X + 9, self.Y, committee=GaussianNB(), duplicates="near", random_state=0
        )
        model.prefer("fp <= 60%, fn <= 60%")
        model = model.accept()
        noise = 0.001 * np.random.default_rng(2).normal(size=X.shape)
        again = model.recertify(X + 9 + noise, y)
        assert again.certificate_.confusion.n <= DISTINCT + 10

    def test_rows_that_agree_by_chance_are_new(self):
        X = np.random.default_rng(0).poisson(5, (4000, 6))
        y = (X[:, 0] + X[:, 1] > 10).astype(int)
        table = frame(X, name=[f"n{i:05d}" for i in range(4000)])
        dialog = Dialog.from_data(table[:2000], y[:2000], committee="logistic", certify=None)
        dialog.prefer("fp <= 60%")
        assert dialog.accept(table[2000:], y[2000:]).certificate_.confusion.n > 1000

    def test_copies_in_it_count_once_or_are_a_question(self):
        X, y, of = copied()
        names = np.random.default_rng(0).permutation(len(of) + 800)
        first = np.column_stack([self.X, names[:800]])
        near = X + 0.001 * np.random.default_rng(2).normal(size=X.shape)
        equal = np.column_stack([X + 5, names[800:]])
        near = np.column_stack([near + 5, 10_000 + np.arange(len(of))])
        dialog, asking = (
            Dialog.from_data(
                first, self.Y, committee=GaussianNB(), certify=None, duplicates=duplicates
            )
            for duplicates in ("near", "group")
        )
        for one in (dialog, asking):
            one.prefer("fp <= 60%")
        model = dialog.accept(equal, y)
        assert model.certificate_.confusion.n <= DISTINCT
        model.set_params(duplicates="group")
        for certify in (asking.accept, model.recertify):
            with pytest.raises(GuaranteeError) as asked:
                certify(near, y)
            assert asked.value.code == "many_copies"

    def test_a_model_knows_its_rows_by_other_columns_than_the_identifier(self):
        X, y, of = copied()
        table = frame(X, visit=NAMES["integer"](of))
        dialog = Dialog.from_data(table, y, committee="qda", duplicates="near", random_state=0)
        dialog.prefer("fp <= 60%")
        model = dialog.accept()
        with pytest.raises(GuaranteeError) as refused:
            model.recertify(table.assign(visit=table.visit + 10_000), y)
        assert refused.value.code == "used_samples"
