"""Copies of rows: in the split, in a certification set, and in the rows that a model remembers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from margrave import ParameterError
from margrave.steer import (
    Dialog,
    GuaranteeError,
    SplitError,
    SteeredClassifier,
)
from margrave.steer._row_hashes import (
    UsedRows,
    hash_rows,
    random_keys,
    rounding_grid,
)

RANDOM = np.random.default_rng(0)


def draw(n, seed=0, columns=3):
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.4).astype(int)
    return random.normal(size=(n, columns)) + y[:, None], y


def rows_of(dialog):
    """The rows of the table in the tuning set, and in the certification set."""
    return dialog._data.at, dialog._acceptances.certification_set.at


class TestHashes:
    TABLE = np.round(RANDOM.normal(size=(300, 4)), 1) * (RANDOM.random((300, 4)) > 0.5)

    @pytest.mark.parametrize(
        "hold",
        [pd.DataFrame, sparse.csr_matrix, sparse.csc_array, np.ndarray.tolist, np.asfortranarray,
         lambda X: X.astype(object), lambda X: pd.DataFrame(X).astype("Float64")],
    )  # fmt: skip
    def test_what_holds_the_rows_does_not_matter(self, hold):
        assert (hash_rows(hold(self.TABLE)) == hash_rows(self.TABLE)).all()
        grid = rounding_grid(self.TABLE)
        assert (hash_rows(hold(self.TABLE), grid) == hash_rows(self.TABLE, grid)).all()

    def test_equal_rows_and_only_they_have_equal_hashes(self):
        distinct = np.unique(self.TABLE, axis=0)
        assert len(np.unique(hash_rows(self.TABLE))) == len(distinct) < 300
        assert len(np.unique(hash_rows(distinct))) == len(distinct)

    def test_values_belong_to_their_columns(self):
        rows = np.array([[1, 2, 0], [2, 1, 0], [0, 1, 2], [1, 2, 1], [0, 0, 0]])
        assert len(np.unique(hash_rows(rows))) == 5

    def test_kinds_of_values(self):
        one = pd.DataFrame(
            {
                "text": ["a", " a", None, "", "1"],
                "number": pd.array([1, 1, None, None, 1], dtype="Int64"),
                "flag": [True, 1.0, 0, False, 1],
                "date": pd.to_datetime(["2020-01-01"] * 2 + [None] * 2 + ["2020-01-01"]),
            }
        )
        a, b, c, d, e = hash_rows(one)
        assert a == b
        assert c == d
        assert len({a, c, e}) == 3

    def test_both_zeros_are_the_same_number(self):
        a, b, c = hash_rows(np.array([[0.0], [-0.0], [1.0]]))
        assert a == b != c

    def test_large_integers_are_exact(self):
        a, b = hash_rows(np.array([[2**60 + 1], [2**60 + 2]]))
        assert a != b

    @pytest.mark.parametrize("scale", [1e-12, 1e-7, 1.0, 1e9])
    def test_rounding_is_relative_to_the_scale_of_a_column(self, scale):
        X = RANDOM.normal(size=(200, 3)) * scale
        X[0] = 1e6 * scale  # an outlier does not make the others equal
        grid = rounding_grid(X)
        rounded = hash_rows(X, grid)
        assert len(np.unique(rounded)) == 200
        close = (hash_rows(X * (1 + 1e-13), grid) == rounded).mean()
        assert close > 0.95
        assert not (hash_rows(X * (1 + 1e-3), grid) == rounded).any()

    def test_no_rows_and_no_columns(self):
        assert hash_rows(np.zeros((0, 3))).shape == (0,)
        assert len(set(hash_rows(np.zeros((3, 0))))) == 1

    def test_what_other_rows_hold_does_not_matter(self):
        few = np.array([[1], [2**53 + 2], [-5]])
        many = np.array([[1], [2**53 + 2], [-5], [2**60]])
        assert (hash_rows(few) == hash_rows(many)[:3]).all()
        moments = np.array([["2020-01-01"], ["NaT"]], dtype="datetime64[D]")
        assert (hash_rows(moments) == hash_rows(moments.astype("datetime64[ns]"))).all()
        objects = np.array([[np.bool_(True), "a"], [10**400, "b"]], dtype=object)
        assert hash_rows(objects)[0] == hash_rows([[1.0, "a"]])[0]

    def test_numbers_that_were_read_as_text_are_numbers(self):
        frame = pd.DataFrame({"a": ["1.50", "-2e3", "x", ".5"], "b": [1, 2, 3, 4]})
        numbers = pd.DataFrame({"a": [1.5, -2000, np.nan, 0.5], "b": [1, 2, 3, 4]})
        assert (hash_rows(frame) == hash_rows(numbers)).tolist() == [True, True, False, True]

    def test_a_sparse_matrix_stays_as_it_is(self):
        X = sparse.csr_matrix(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]))
        assert (hash_rows(X) == hash_rows(X.toarray())).all()
        assert X.nnz == 3


def repeat(X, y, times, seed=0):
    """Repeat each row so many times, in random order."""
    at = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(y)), times))
    return X[at], y[at], at


class TestSplit:
    @pytest.mark.parametrize("tune", [None, 0.3])
    @pytest.mark.parametrize("seed", range(3))
    def test_copies_stay_together_and_certify_once(self, tune, seed):
        X, y = draw(300, seed)
        X, y, of = repeat(X, y, RANDOM.integers(1, 4, 300), seed)
        dialog = Dialog.from_data(X, y, committee=GaussianNB(), tune=tune, random_state=seed)
        tuning, certify = rows_of(dialog)
        assert len(set(of[certify])) == len(certify) == pytest.approx(60, abs=2)
        in_certify = np.isin(of, of[certify])
        assert not in_certify[tuning].any()
        assert dialog.sizes.copies == len(y) - 300
        assert dialog.sizes.unused == in_certify.sum() - len(certify)
        for training, held in dialog._data.folds:
            assert not np.isin(of[tuning][held], of[tuning][training]).any()

    def test_equal_features_with_other_labels_are_copies_too(self):
        X, y = draw(300)
        X, y, of = repeat(X, y, np.full(300, 2))
        y = np.where(np.arange(600) % 7 == 0, 1 - y, y)
        _, certify = rows_of(Dialog.from_data(X, y, committee=GaussianNB(), random_state=0))
        assert len(set(of[certify])) == len(certify)

    def test_without_copies_the_split_is_stratified_as_before(self):
        X, y = draw(1000)
        sizes = [
            Dialog.plan_split(X, y, duplicates=name, random_state=0)
            for name in ("group", "independent")
        ]
        assert sizes[0] == sizes[1]
        assert sizes[0].copies == 0

    @pytest.mark.core
    @pytest.mark.parametrize("guarantee", [None, "fp <= 25%"])
    def test_of_groups_and_times(self, guarantee):
        X, y = draw(400)
        X, y, of = repeat(X, y, 1 + np.arange(400) % 2)
        options = {"committee": GaussianNB(), "guarantee": guarantee, "random_state": 0}
        for groups in (RANDOM.integers(0, 100, 600), of // 4):  # with copies in several, or in one
            tuning, certify = rows_of(Dialog.from_data(X, y, groups=groups, **options))
            counted = groups if guarantee is None else groups * 2 + y
            assert len(set(of[certify])) == len(set(counted[certify])) == len(certify)
            assert not np.isin(of[certify], of[tuning]).any()
            assert not np.isin(groups[certify], groups[tuning]).any()
        dialog = Dialog.from_data(X, y, time=np.arange(600), **options)
        assert (dialog.plan() is None) == (guarantee is None)
        tuning, certify = rows_of(dialog)
        assert len(set(of[certify])) == len(certify)
        assert not np.isin(of[certify], of[tuning]).any()

    @pytest.mark.parametrize("by", ["groups", "time"])
    def test_a_certification_set_of_copies_only_is_refused(self, by):
        X, y = draw(100)
        X, y = np.tile(X, (5, 1)), np.tile(y, 5)
        with pytest.raises(SplitError) as refused:
            Dialog.plan_split(X, y, **{by: np.repeat(np.arange(5), 100)})
        assert (refused.value.code, refused.value.fields["n"]) == (
            "copies",
            {"groups": 1}.get(by, 100),
        )

    def test_a_class_needs_different_rows(self):
        X, y = draw(200)
        X[y == 1] = X[y == 1][0]
        with pytest.raises(SplitError) as refused:
            Dialog.plan_split(X, y)
        assert (refused.value.fields["n"], refused.value.fields["n_copies"]) == (
            1,
            (y == 1).sum() - 1,
        )
        assert Dialog.plan_split(X, y, duplicates="independent").copies == (y == 1).sum() - 1

    def test_discrete_rows_may_be_independent(self):
        X, y = draw(600)
        X = np.round(X / 2)
        dialog = Dialog.from_data(
            X[:400], y[:400], committee=GaussianNB(), duplicates="independent", random_state=0
        )
        assert (dialog.sizes.certify, dialog.sizes.unused) == (80, 0)
        dialog.prefer("fp <= 60%")
        model = dialog.accept(X[400:], y[400:])
        assert model.certificate_.confusion.n == 200
        assert model.duplicates == "independent"
        assert model.check(X[400:], y[400:]).n_used == 0

    def test_independent_rows_that_differ_are_known_all_the_same(self):
        X, y = draw(600)
        for own in (X, X.astype(np.float32)):
            with pytest.raises(GuaranteeError) as refused:
                Dialog.from_data(
                    X, y, committee=GaussianNB(), certify=(own, y), duplicates="independent"
                )
            assert refused.value.code == "used_samples"

    @pytest.mark.parametrize("value", ["keep", None, True, 1])
    def test_another_value_is_refused(self, value):
        X, y = draw(200)
        with pytest.raises(ParameterError, match="duplicates"):
            Dialog.from_data(X, y, committee=GaussianNB(), duplicates=value)
        with pytest.raises(ParameterError, match="duplicates"):
            Dialog(GaussianNB().fit(X, y), X, y, duplicates=value)
        with pytest.raises(ParameterError, match="duplicates"):
            SteeredClassifier(GaussianNB(), preference="fp <= 50%", duplicates=value).fit(X, y)

    def test_folds_of_a_tuning_set_keep_copies_together(self):
        X, y = draw(200)
        model = GaussianNB().fit(*draw(200, 1))
        X, y, of = repeat(X, y, np.full(200, 2))
        for training, held in Dialog(model, X, y)._data.folds:
            assert not np.isin(of[held], of[training]).any()

    def test_the_certificate_counts_copies(self):
        X, y = draw(300)
        X, y, _ = repeat(X, y, np.full(300, 2))
        dialog = Dialog.from_data(X, y, committee=GaussianNB(), random_state=0)
        dialog.prefer("fp <= 50%")
        model = dialog.accept()
        assert sum("300" in re.findall(r"\d+", note) for note in model.certificate_.remarks) == 1
        for text in (str(model.certificate_), model.model_card()):
            assert re.search(r"\b300\b", text)


class TestOwnCertificationSet:
    X, Y = draw(800)

    def test_rows_of_the_table_are_refused_before_training(self):
        class Trained(GaussianNB):
            def fit(self, X, y, sample_weight=None):
                raise AssertionError("trained before the certification set was checked")

        shared = np.concatenate([self.X[597:600], self.X[600:]])
        labels = np.concatenate([self.Y[597:600], self.Y[600:]])
        with pytest.raises(GuaranteeError) as refused:
            Dialog.from_data(
                self.X[:600], self.Y[:600], committee=Trained(), certify=(shared, labels)
            )
        assert refused.value.code == "used_samples"
        assert (refused.value.fields["n_used"], refused.value.fields["n"]) == (3, 203)

    @pytest.mark.parametrize("tune", [None, 0.3])
    def test_training_and_tuning_rows_are_known(self, tune):
        dialog = Dialog.from_data(
            self.X[:600], self.Y[:600], committee=GaussianNB(), certify=None, tune=tune
        )
        dialog.prefer("fp <= 50%")
        for i in (0, 299, 599):
            rows = np.append(np.arange(600, 800), i)
            with pytest.raises(GuaranteeError) as refused:
                dialog.accept(self.X[rows], self.Y[rows])
            assert refused.value.fields["n_used"] == 1
        assert not dialog.accepted

    def test_copies_in_it_count_once(self):
        dialog = Dialog.from_data(
            self.X[:600],
            self.Y[:600],
            committee=GaussianNB(),
            certify=(np.tile(self.X[600:], (5, 1)), np.tile(self.Y[600:], 5)),
        )
        assert dialog.sizes.certify == 200
        dialog.prefer("fp <= 50%")
        assert dialog.accept().certificate_.confusion.n == 200

    @pytest.mark.parametrize("scale", [1e-7, 1e7])
    @pytest.mark.parametrize("wobble", [0, 1e-12])
    def test_small_and_large_numbers_are_told_apart(self, scale, wobble):
        X = self.X * scale
        dialog = Dialog(GaussianNB().fit(X[:300], self.Y[:300]), X[300:600], self.Y[300:600])
        dialog.prefer("fp <= 50%")
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept(X[300:600] * (1 + wobble), self.Y[300:600])
        assert refused.value.code == "used_samples"
        assert dialog.accept(X[600:], self.Y[600:]).certificate_.confusion.n == 200

    @pytest.mark.parametrize(
        "change",
        [lambda X: X.astype(np.float32), lambda X: X.round(6), lambda X: X.astype(str).tolist()],
    )
    def test_the_same_rows_with_fewer_digits_or_as_text(self, change):
        X, y = draw(400, columns=30)
        with pytest.raises(GuaranteeError) as refused:
            Dialog.from_data(X, y, committee=GaussianNB(), certify=(change(X), y))
        assert refused.value.code == "used_samples"

    def test_copies_in_it_are_noted(self):
        dialog = Dialog.from_data(
            self.X[:600], self.Y[:600], committee=GaussianNB(), certify=None, random_state=0
        )
        dialog.prefer("fp <= 50%")
        X, y = np.repeat(self.X[600:], 2, axis=0), np.repeat(self.Y[600:], 2)
        assert any("200" in note for note in dialog.accept(X, y).certificate_.notes)

    def test_notes_are_about_the_certification_set_itself(self):
        X, y = np.repeat(self.X[:300], 2, axis=0), np.repeat(self.Y[:300], 2)
        dialog = Dialog.from_data(X, y, committee=GaussianNB(), random_state=0)
        dialog.prefer("fp <= 50%")
        assert len(dialog.accept().certificate_.notes) == 1
        model = dialog.accept(self.X[300:], self.Y[300:])
        assert model.certificate_.notes == ()

    def test_a_frame_with_its_columns_in_another_order(self):
        frame = pd.DataFrame(self.X, columns=["a", "b", "c"])
        dialog = Dialog.from_data(frame[:600], self.Y[:600], committee="logistic", certify=None)
        dialog.prefer("fp <= 50%")
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept(frame[["c", "a", "b"]][:600], self.Y[:600])
        assert refused.value.fields["n_used"] == 600

    def test_recertification_and_check_know_all_rows(self):
        dialog = Dialog.from_data(
            self.X[:600], self.Y[:600], committee=GaussianNB(), random_state=0
        )
        dialog.prefer("fp <= 50%")
        model = dialog.accept()
        with pytest.raises(GuaranteeError) as refused:
            model.recertify(self.X, self.Y)
        assert refused.value.fields["n_used"] == 600  # the certification set among them
        rows = np.append(np.arange(600, 800), 5)
        with pytest.raises(GuaranteeError) as refused:
            model.recertify(self.X[rows], self.Y[rows])
        assert refused.value.fields["n_used"] == 1
        assert model.check(self.X[rows], self.Y[rows]).n_used == 1
        renewed = model.recertify(*(np.repeat(of[600:], 3, axis=0) for of in (self.X, self.Y)))
        assert renewed.certificate_.confusion.n == 200
        with pytest.raises(GuaranteeError):
            renewed.recertify(self.X[700:], self.Y[700:])


@pytest.mark.parametrize("kind", [bool, object, "frame"])
def test_arrays_of_all_kinds_can_be_certified(kind):
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 400)
    X = random.random((400, 16)) < np.where(y, 0.6, 0.4)[:, None]
    members = "logistic" if kind == "frame" else KNeighborsClassifier()
    if kind == "frame":
        X = pd.DataFrame(X).astype({0: "category", 1: "string", 2: "boolean"}).add_prefix("c")
    else:
        X = X.astype(kind)
    dialog = Dialog.from_data(X, y, committee=members, random_state=0)
    dialog.prefer("fp <= 70%")
    model = dialog.accept()
    assert model.certificate_.confusion.n == dialog.sizes.certify
    if kind != "frame":
        one_call = SteeredClassifier(members, preference="fp <= 70%", random_state=0)
        assert one_call.fit(X, y).certificate_.preference == "fp <= 70%"


def test_keys_of_rows_are_uniform_and_depend_on_the_seed():
    keys = random_keys(hash_rows(np.arange(4000.0)[:, None]), 7)
    counts = np.histogram(keys, 10, (0, 1))[0]
    assert counts.sum() == 4000
    assert np.abs(counts - 400).max() < 100
    assert np.abs(np.corrcoef(keys[1:], keys[:-1])[0, 1]) < 0.06
    other = random_keys(hash_rows(np.arange(4000.0)[:, None]), 8)
    assert np.abs(np.corrcoef(keys, other)[0, 1]) < 0.06


def test_rows_that_are_equal_by_chance_are_not_used_rows():
    X = np.random.default_rng(0).integers(0, 4, (400, 2)).astype(float)
    used = UsedRows.none_of(X, "independent")
    used = used.with_rows(used.hash(X[:200]))
    assert used.count(used.hash(X[200:])) == 0
    assert UsedRows.none_of(X, "group").with_rows(used.rows).count(used.hash(X[200:])) == 200
    new = X[:50] + 100
    assert used.count(used.hash(new)) == 0


class TestCounts:
    def test_rounding_is_to_four_digits_below_the_scale_and_to_six_of_a_single_column(self):
        a = np.arange(-50, 51) / 100  # a half of them is farther from 0 than 0.25
        assert rounding_grid(np.column_stack([a, 1000 * a])) == pytest.approx([1e-5, 1e-2])
        assert rounding_grid(np.column_stack([a, a / 1000])) == pytest.approx([1e-5, 1e-8])
        few, constant = np.arange(101) % 3 - 1.0, np.full(101, 7.0)
        assert rounding_grid(np.column_stack([a, constant])) == pytest.approx([1e-7, 0])
        assert rounding_grid(np.column_stack([a, few])) == pytest.approx([1e-7, 1e-6])
        dense = np.column_stack([a + 1, 1000 * a + 1])
        for kind in (sparse.csr_matrix, sparse.csc_array):
            assert rounding_grid(kind(dense)) == pytest.approx([1e-5, 1e-2])
        frame = pd.DataFrame({"a": a, "text": ["x"] * 101, "when": pd.Timestamp("2026-01-01")})
        assert rounding_grid(frame) == pytest.approx([1e-7, 0, 0])
