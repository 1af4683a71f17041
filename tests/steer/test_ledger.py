"""What a certification set may still be used for: fractions of δ, and accepting twice."""

import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame, concat
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave import ParameterError
from margrave.steer import (
    Account,
    Dialog,
    FileError,
    FileLedger,
    GuaranteeError,
    Ledger,
    RowSample,
    Use,
    _certify,
)

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes that are files")
USED_UP = r"\breserve\b"  # the parameter that would have left some; no other refusal names it


def samples(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], np.where(y == 1, "spam", "ham")


MODEL = LogisticRegression().fit(*samples(100, 0))
CERTIFY = samples(400, 2)


@pytest.fixture
def dialog():
    made = Dialog(MODEL, *samples(200, 1))
    made.prefer("fp <= 10%", strategies=["move"])
    return made


def account_of(delta, *parts):
    uses = [
        Use(part, "2026-01-01", "fp <= 1%", "certified", str(i)) for i, part in enumerate(parts)
    ]
    return Account(delta, RowSample.of(np.zeros((1, 1))), None, tuple(uses))


def parts_of(account):
    return [use.part for use in account.uses]


class TestAccount:
    @pytest.mark.core
    @given(st.floats(1e-6, 0.5), st.lists(st.booleans(), max_size=40))
    def test_what_is_used_up_is_never_more_than_there_is(self, delta, reserves):
        account = account_of(delta)
        for reserve in reserves:
            if not account.left:
                with pytest.raises(GuaranteeError, match=USED_UP):
                    account.next_part(delta, reserve)
                continue
            share = account.next_part(delta, reserve)
            assert 0 < share <= delta
            account = account_of(delta, *parts_of(account), share)
        assert sum(parts_of(account)) <= delta * (1 + 1e-12)
        assert account.left >= 0

    def test_shares_are_a_half_a_quarter_an_eighth(self):
        account = account_of(0.5)
        for _ in range(4):
            account = account_of(0.5, *parts_of(account), account.next_part(0.5, reserve=True))
        assert parts_of(account) == [0.25, 0.125, 0.0625, 0.03125]
        assert account.next_part(0.5, reserve=False) == account.left == 0.03125
        assert account_of(0.5, *parts_of(account), account.left).left == 0

    def test_all_at_once_leaves_nothing(self):
        account = account_of(0.05)
        account = account_of(0.05, account.next_part(0.05, reserve=False))
        assert parts_of(account) == [0.05]
        assert account.left == 0
        for reserve in (False, True):
            with pytest.raises(GuaranteeError, match=USED_UP) as caught:
                account.next_part(0.05, reserve)
            assert not caught.value.used_up

    def test_another_confidence_is_refused(self):
        with pytest.raises(GuaranteeError, match=r"\b0\.95\b.*\b0\.99\b"):
            account_of(1 - 0.95).next_part(1 - 0.99, reserve=False)

    def test_the_same_confidence_but_for_rounding_is_not(self):
        assert account_of(1 - 0.95).next_part(0.05, reserve=False) == 1 - 0.95


USE = {
    "part": 0.05,
    "date": "2026-01-01",
    "preference": "fp <= 1%",
    "outcome": "certified",
    "name": "a",
}
DAMAGED = [
    *({"uses": [{**USE, "part": part}]} for part in (0, -5, 1, True, "0.05", None, 10**400)),
    *({"uses": [{**USE, "part": float(part)}]} for part in ("nan", "inf", "-inf")),
    *({"uses": [{**USE, "outcome": outcome}]} for outcome in ("other", "", None, [])),
    *({"uses": [{**USE, "date": date}]} for date in ("", "yesterday", 7)),
    *({"uses": [{**USE, field: None}]} for field in ("name", "preference")),
    *({"uses": uses} for uses in ({}, [], None, 7, [{}], [USE, USE], [{**USE, "more": 1}])),
    *({"delta": delta} for delta in (0, 1, -0.05, 7, float("nan"), True, "0.05", None, 10**400)),
    *({"rows": rows} for rows in ("", "AAAA", "AAAAAAAAAAA=" * 2, "?", None, 7)),
    *({"target": target} for target in (7, [], {})),
]


class TestDamagedAccount:
    @pytest.mark.parametrize("change", DAMAGED, ids=repr)
    def test_a_damaged_account_is_an_error(self, change):
        record = account_of(0.05, 0.05).to_dict()
        assert Account.from_dict(record).used_up
        with pytest.raises(FileError) as refused:
            Account.from_dict(record | change)
        assert refused.value.code == "damaged"

    @pytest.mark.parametrize("record", [None, [], {}, "x", 7])
    def test_what_is_no_account_is_an_error(self, record):
        with pytest.raises(FileError) as refused:
            Account.from_dict(record)
        assert refused.value.code == "damaged"

    @pytest.mark.parametrize("step", [-1, 0])
    def test_rows_are_sorted_and_each_is_there_once(self, step):
        hashes = RowSample.of(np.arange(9.0)[:, None]).hashes
        rows = RowSample(hashes[::-1] if step else np.repeat(hashes, 2))
        with pytest.raises(ParameterError) as refused:
            Account(0.05, rows)
        assert refused.value.fields["parameter"] == "rows"

    def test_a_state_with_a_damaged_account_is_refused(self):
        dialog = begin(*TABLE)
        dialog.accept()
        state = dialog.dump_state()
        state["accounts"][0]["uses"][0]["part"] = -5
        models = [dialog.accepted[0].model.to_bytes()]
        with pytest.raises(FileError) as refused:
            Dialog.restore(dialog.dump_start(), [dialog.dump_step(1)], models, state)
        assert refused.value.code == "damaged"


class TestAccepting:
    def test_the_first_takes_all_and_a_second_is_refused(self, dialog):
        first = dialog.accept(*CERTIFY).certificate_
        assert (first.delta, first.number) == (pytest.approx(0.05), 1)
        dialog.prefer("fn <= 10%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=USED_UP):
            dialog.accept(*CERTIFY)
        with pytest.raises(GuaranteeError, match=USED_UP):
            dialog.accept(*CERTIFY, reserve=True)

    def test_fresh_samples_are_not_used_up(self, dialog):
        dialog.accept(*CERTIFY)
        dialog.prefer("fn <= 10%", strategies=["move"])
        again = dialog.accept(*samples(400, 3)).certificate_
        assert (again.delta, again.number) == (pytest.approx(0.05), 1)

    def test_the_same_step_gives_the_same_model_and_is_used_once(self, dialog):
        first = dialog.accept(*CERTIFY, reserve=True)
        assert dialog.accept(*CERTIFY, reserve=True) is first
        assert dialog.accept(*CERTIFY) is first
        dialog.prefer("fn <= 10%", strategies=["move"])
        second = dialog.accept(*CERTIFY, reserve=True)
        dialog.goto(1)
        assert dialog.accept(*CERTIFY) is first
        assert second.certificate_.number == 2

    def test_reserving_leaves_shares_for_others(self, dialog):
        deltas = []
        for number, text in enumerate(["fp <= 10%", "fn <= 10%", "fp <= 20%"], 1):
            dialog.prefer(text, strategies=["move"])
            certificate = dialog.accept(*CERTIFY, reserve=True).certificate_
            assert certificate.number == number
            assert certificate.confidence == 0.95
            assert certificate.guarantees[0].delta == certificate.delta
            deltas.append(certificate.delta)
        assert deltas == pytest.approx([0.025, 0.0125, 0.00625])
        dialog.prefer("fn <= 20%", strategies=["move"])
        last = dialog.accept(*CERTIFY).certificate_
        assert last.delta == pytest.approx(0.00625)
        assert sum(deltas) + last.delta <= 0.05 * (1 + 1e-12)
        dialog.prefer("fn <= 25%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=USED_UP):
            dialog.accept(*CERTIFY, reserve=True)

    def test_less_that_is_left_is_a_stricter_threshold(self, dialog):
        half = dialog.accept(*CERTIFY, reserve=True)
        other = Dialog(MODEL, *samples(200, 1))
        other.prefer("fp <= 10%", strategies=["move"])
        whole = other.accept(*CERTIFY)
        assert half.certificate_.guarantees[0].count < whole.certificate_.guarantees[0].count
        assert half.decision_.high > whole.decision_.high

    def test_another_confidence_on_the_same_samples(self, dialog):
        dialog.accept(*CERTIFY, reserve=True)
        dialog.prefer("fn <= 10%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=r"\b0\.95\b.*\b0\.9\b"):
            dialog.accept(*CERTIFY, confidence=0.9)

    def test_a_refusal_by_size_uses_up_nothing(self, dialog):
        dialog.prefer("fp <= 0.1%", strategies=["move"])
        for _ in range(2):
            with pytest.raises(GuaranteeError, match=r"\b2,995\b") as caught:
                dialog.accept(*CERTIFY)
            assert not caught.value.used_up
        with pytest.raises(GuaranteeError, match=r"\b2,302\b"):  # nor is a confidence set
            dialog.accept(*CERTIFY, confidence=0.9)
        dialog.prefer("fp <= 10%", strategies=["move"])
        certificate = dialog.accept(*CERTIFY).certificate_
        assert (certificate.delta, certificate.number) == (pytest.approx(0.05), 1)

    def test_a_refusal_for_want_of_a_class_uses_up_nothing(self, dialog):
        X, y = CERTIFY
        ham = y == "ham"
        for _ in range(2):
            with pytest.raises(GuaranteeError, match=r"\bspam\b"):
                dialog.accept(X[ham], y[ham])

    @pytest.mark.parametrize("text", ["precision >= 92%", "fp <= 15%, fn <= 15%"])
    def test_a_test_that_failed_uses_up_the_samples(self, dialog, text):
        dialog.prefer(text, strategies=["move"])
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept(*CERTIFY, anyway=True)
        assert caught.value.used_up
        dialog.prefer("fp <= 10%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=USED_UP):
            dialog.accept(*CERTIFY)

    def test_a_test_that_failed_uses_up_its_fraction_only(self, dialog):
        dialog.prefer("precision >= 92%", strategies=["move"])
        with pytest.raises(GuaranteeError):
            dialog.accept(*CERTIFY, reserve=True)
        dialog.prefer("fp <= 10%", strategies=["move"])
        certificate = dialog.accept(*CERTIFY).certificate_
        assert (certificate.delta, certificate.number) == (pytest.approx(0.025), 2)

    def test_a_test_that_failed_can_be_repeated_and_is_one_use(self, dialog):
        dialog.prefer("precision >= 92%", strategies=["move"])
        for _ in range(3):
            with pytest.raises(GuaranteeError, match="precision >= 92%"):
                dialog.accept(*CERTIFY, reserve=True)
        dialog.prefer("fp <= 20%", strategies=["move"])
        assert dialog.accept(*CERTIFY).certificate_.delta == pytest.approx(0.05 / 2)

    @pytest.mark.parametrize("as_given", ["other order", "as lists"])
    def test_samples_are_known_by_what_is_in_them(self, dialog, as_given):
        """The same rows again, written a little differently, are as used as before."""
        X, y = CERTIFY
        dialog.accept(X, y)
        dialog.prefer("fn <= 10%", strategies=["move"])
        again = (X[::-1], y[::-1]) if as_given == "other order" else (X.tolist(), y.tolist())
        with pytest.raises(GuaranteeError, match=USED_UP):
            dialog.accept(*again)

    def test_both_or_neither(self, dialog):
        with pytest.raises(ValueError, match=r"\bX_certify\b.*\by_certify\b"):
            dialog.accept(CERTIFY[0])


class Interrupted(LogisticRegression):
    """A classifier that raises KeyboardInterrupt after `left` more predictions."""

    left = None

    def predict_proba(self, X):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return super().predict_proba(X)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_ctrl_c_before_the_labels_are_used_leaves_the_certification_set(left):
    model = Interrupted().fit(*samples(100, 0))
    dialog = Dialog(model, *samples(200, 1))
    dialog.prefer("fp <= 10%", strategies=["move"])
    member = dialog._data.committee.members[0]
    member.left = left
    with pytest.raises(KeyboardInterrupt):
        dialog.accept(*CERTIFY)
    member.left = None
    assert dialog.accept(*CERTIFY).certificate_.number == 1


def test_ctrl_c_while_the_labels_are_used_counts_as_a_use(dialog, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_certify, "issue_certificate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            dialog.accept(*CERTIFY)
    dialog.prefer("fn <= 10%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=USED_UP):
        dialog.accept(*CERTIFY)
    dialog.undo()
    assert dialog.accept(*CERTIFY).certificate_.number == 1  # the same request is the same use


def test_support_follows_what_is_left_of_the_certification_set():
    dialog = Dialog.from_data(*samples(600, 3), committee=LogisticRegression(), random_state=0)
    dialog.prefer("fp <= 20%", strategies=["move"])
    whole = dialog.support()
    for limit in dialog.sizes.smallest_limits().values():
        assert f"{100 * limit:.2f}%" in whole
    dialog.accept(reserve=True)
    half = dialog.support()
    for limit in dialog.sizes.smallest_limits(0.975).values():
        assert f"{100 * limit:.2f}%" in half
    dialog.goto(0)
    dialog.prefer("fp <= 30%", strategies=["move"])
    dialog.accept()
    assert len({whole, half, dialog.support()}) == 3


class TestChecking:
    @pytest.fixture
    def with_certification_set(self):
        """A dialog with about 90 certification samples of each class."""
        return Dialog.from_data(
            *samples(600, 3), committee=LogisticRegression(), certify=0.3, random_state=0
        )

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("fp <= 20%", None),
            ("fp <= 1%", "too_few_samples"),
            ("fp <= 3.5%", None),
            ("fp <= 3.5%, fn <= 90%", None),  # a tested path needs no half of the error probability
            ("recall >= 99%", "too_few_samples"),
            ("precision >= 99%", "too_few_samples"),
            ("fp <= 20%, rejected <= 1%", None),  # nothing may be rejected instead
            ("fp <= 100%", "trivial"),
        ],
    )
    def test_what_cannot_be_proved_is_known_before(self, with_certification_set, text, code):
        """Accepting refuses it for the same reason, and uses nothing."""
        with_certification_set.prefer(text, strategies=["move", "reject"])
        if code is None:
            with_certification_set.check_accept()
            return
        with pytest.raises(GuaranteeError) as checked:
            with_certification_set.check_accept()
        with pytest.raises(GuaranteeError) as refused:
            with_certification_set.accept()
        assert checked.value.to_dict() == refused.value.to_dict()
        assert (checked.value.code, refused.value.used_up) == (code, False)
        assert with_certification_set.certification.uses == ()

    def test_it_depends_on_the_confidence_and_on_what_is_left(self, with_certification_set):
        with_certification_set.prefer("fp <= 3.5%", strategies=["move"])
        with_certification_set.check_accept(confidence=0.9, reserve=True)
        for options in ({"confidence": 0.99}, {"reserve": True}):
            with pytest.raises(GuaranteeError) as refused:
                with_certification_set.check_accept(**options)
            assert refused.value.code == "too_few_samples"
        with_certification_set.prefer("fp <= 30%", strategies=["move"])
        with_certification_set.accept()
        with_certification_set.check_accept()  # the same model again
        with_certification_set.goto(1)
        with pytest.raises(GuaranteeError) as refused:
            with_certification_set.check_accept()
        assert refused.value.code == "used_up"

    def test_what_is_missing_is_named(self, dialog, with_certification_set):
        for one, code in (
            (dialog, "no_certification_set"),
            (with_certification_set, "no_preference"),
        ):
            with pytest.raises(GuaranteeError) as refused:
                one.check_accept()
            assert refused.value.code == code
        with pytest.raises(ParameterError, match="confidence"):
            with_certification_set.check_accept(confidence=1.5)


# One ledger for several dialogs

TABLE = samples(600, 4)


def begin(X, y, text="fp <= 20%", seed=0, **options):
    dialog = Dialog.from_data(X, y, committee=LogisticRegression(), random_state=seed, **options)
    dialog.prefer(text, strategies=["move"])
    return dialog


def certified(dialog, **options):
    """Whether a dialog gets a certificate; otherwise its data have to be used up."""
    try:
        return dialog.accept(**options).certificate_
    except GuaranteeError as error:
        if error.code != "used_up":
            raise
        return None


def changed(kind):
    """The table, changed a little: its X, its y, and further options."""
    X, y = TABLE
    random = np.random.default_rng(0)
    n = len(y)
    at = {
        "another seed": np.arange(n),
        "a row dropped": np.arange(1, n),
        "a row repeated": np.r_[np.arange(n), 7],
        "shuffled": random.permutation(n),
        "half of the rows": np.arange(0, n, 2),
        "as many new rows": np.arange(n),
        "a column dropped": np.arange(n),
        "half of the rows without a column": np.arange(n // 2),
    }[kind]
    table, X, y = X[at], X[at], y[at]
    if kind == "as many new rows":
        X, y = (np.concatenate(parts) for parts in zip((X, y), samples(n, 5), strict=True))
        table = X
    if "column" in kind:
        X = X[:, :1]
    return X, y, {"table": table}


CHANGES = [
    "another seed",
    "a row dropped",
    "a row repeated",
    "shuffled",
    "half of the rows",
    "as many new rows",
    "a column dropped",
    "half of the rows without a column",
]


class TestSharing:
    def test_the_same_limit_for_another_positive_class_is_another_use(self):
        X, y = TABLE
        ledger, (first, second) = Ledger(), np.unique(y)
        assert certified(begin(X, y, positive=first, ledger=ledger)) is not None
        assert certified(begin(X, y, positive=second, ledger=ledger)) is None
        assert certified(begin(X, y, positive=first, ledger=ledger)) is not None

    @pytest.mark.parametrize("kind", CHANGES)
    def test_the_same_table_is_used_up_whoever_asks(self, kind):
        ledger = Ledger()
        assert certified(begin(*TABLE, ledger=ledger))
        X, y, options = changed(kind)
        again = begin(X, y, seed=1, ledger=ledger, **options)
        assert again.certification.used_up
        with pytest.raises(GuaranteeError) as refused:
            again.accept()
        assert refused.value.code == "used_up"
        (use,) = refused.value.fields["uses"]
        assert (use["preference"], use["outcome"]) == ("fp <= 20%", "certified")
        assert use["part"] == pytest.approx(0.05)
        assert "fp <= 20%" in str(refused.value)
        with pytest.raises(GuaranteeError):
            again.check_accept()

    def test_new_rows_have_an_account_of_their_own(self):
        ledger = Ledger()
        assert certified(begin(*TABLE, ledger=ledger))
        assert certified(begin(*samples(600, 5), seed=1, ledger=ledger)).number == 1
        own = begin(*TABLE, seed=2, ledger=ledger, certify=samples(300, 6))
        assert certified(own).number == 1
        other = begin(*TABLE, seed=3, ledger=ledger)
        assert other.accept(*samples(300, 7)).certificate_.number == 1
        with pytest.raises(GuaranteeError) as refused:
            begin(*TABLE, "fn <= 20%", ledger=ledger).accept(*samples(300, 7))
        assert refused.value.code == "used_up"

    def test_the_rows_of_a_used_table_are_not_new_rows(self):
        ledger = Ledger()
        X, y = TABLE
        assert certified(begin(X[:, :1], y, ledger=ledger, table=X))
        fitted = begin(*(part[:200] for part in samples(600, 8)), ledger=ledger)
        alone = Dialog(LogisticRegression().fit(X[:, :1], y), X[:100, :1], y[:100], ledger=ledger)
        alone.prefer("fp <= 20%", strategies=["move"])
        for dialog, table in ((fitted, X), (alone, X[:, :1])):
            with pytest.raises(GuaranteeError) as refused:
                dialog.accept(table[300:], y[300:])
            assert refused.value.code == "used_up"

    def test_rows_that_came_with_a_used_table_are_used_as_well(self):
        ledger, (X, y), (X_new, y_new) = Ledger(), TABLE, samples(600, 5)
        assert certified(begin(X, y, ledger=ledger), reserve=True)
        both = begin(np.concatenate([X, X_new]), np.concatenate([y, y_new]), ledger=ledger)
        assert certified(both).number == 2
        assert not certified(begin(X_new, y_new, "fn <= 20%", ledger=ledger))

    def test_tables_of_two_accounts_use_both(self):
        ledger, (X, y), (X_new, y_new) = Ledger(), TABLE, samples(600, 5)
        assert certified(begin(X, y, ledger=ledger))
        assert certified(begin(X_new, y_new, ledger=ledger), reserve=True)
        both = begin(np.concatenate([X, X_new]), np.concatenate([y, y_new]), ledger=ledger)
        assert not certified(both)

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_use_in_two_ledgers_is_not_refunded(self, order):
        """The same request is known with a half of the error probability, and with all of it."""
        rows, ledger = RowSample.of(TABLE[0]), Ledger()
        uses = [
            Use(0.05, "2026-01-02", "fp <= 1%", "certified", "request"),
            Use(0.025, "2026-01-01", "fp <= 1%", "unfinished", "request"),
        ][::order]
        ledger.add([Account(0.05, rows, None, (use,)) for use in uses])
        account = ledger.account(rows)
        assert account.used_up
        (use,) = account.uses
        assert (use.part, use.outcome) == (0.05, "certified")

    def test_another_target_has_an_account_of_its_own(self, tmp_path):
        path = tmp_path / "ledger.json"
        numbers = [
            certified(begin(*TABLE, ledger=FileLedger(path, target))) for target in ("spam", "age")
        ]
        assert [one.number for one in numbers] == [1, 1]
        assert not certified(begin(*TABLE, "fn <= 20%", ledger=FileLedger(path, "spam")))

    def test_a_data_frame_may_have_its_columns_in_another_order(self):
        pandas = pytest.importorskip("pandas")
        ledger, (X, y) = Ledger(), TABLE
        frame = pandas.DataFrame(X, columns=["b", "a"])
        assert certified(begin(frame, y, ledger=ledger))
        assert not certified(begin(frame[["a", "b"]], y, seed=1, ledger=ledger))

    @pytest.mark.parametrize("text", ["fp <= 20%", "accuracy >= 60%"])
    def test_the_same_request_is_the_same_use(self, text):
        """By order statistics, and by a tested path."""
        ledger = Ledger()
        first, second = (begin(*TABLE, text, ledger=ledger) for _ in range(2))
        model = first.accept()
        second.check_accept()
        again = second.accept(reserve=True)
        assert again.certificate_ == model.certificate_
        np.testing.assert_array_equal(again.predict(TABLE[0]), model.predict(TABLE[0]))
        assert len(second.certification.uses) == 1

    @pytest.mark.core
    def test_the_type_of_a_confidence_does_not_make_another_request(self):
        ledger = Ledger()
        first = certified(begin(*TABLE, ledger=ledger), confidence=0.9)
        again = certified(begin(*TABLE, ledger=ledger), confidence=np.float64(0.9))
        assert (first.number, again.number) == (1, 1)

    @pytest.mark.core
    def test_a_request_that_another_dialog_made_can_be_made_again(self):
        ledger = Ledger()
        begin(*TABLE, ledger=ledger).accept()
        again = begin(*TABLE, ledger=ledger)
        again.check_accept()
        assert again.accept().certificate_.number == 1
        with pytest.raises(GuaranteeError) as refused:
            begin(*TABLE, "fn <= 20%", ledger=ledger).check_accept()
        assert refused.value.code == "used_up"

    def test_a_stricter_confidence_is_another_request(self):
        ledger = Ledger()
        assert certified(begin(*TABLE, ledger=ledger))
        assert not certified(begin(*TABLE, ledger=ledger), confidence=0.9)

    def test_ten_seeds_give_one_certificate(self):
        ledger = Ledger()
        found = [certified(begin(*TABLE, seed=seed, ledger=ledger)) for seed in range(10)]
        assert [one is not None for one in found] == [True] + 9 * [False]

    def test_ten_seeds_that_reserve_share_the_error_probability(self):
        ledger = Ledger()
        found = [
            certified(begin(*TABLE, "fp <= 40%", seed=seed, ledger=ledger), reserve=True)
            for seed in range(10)
        ]
        assert [one.number for one in found] == list(range(1, 11))
        assert sum(one.delta for one in found) <= 0.05
        for number, one in enumerate(found):
            assert one.earlier == tuple(ledger.read()[0].uses[:number])
            assert [use["part"] for use in one.to_dict()["earlier"]] == [
                other.delta for other in found[:number]
            ]
        assert len(found[2].remarks) == len(found[0].remarks) + 2

    def test_a_refusal_by_size_opens_no_account(self):
        ledger = Ledger()
        with pytest.raises(GuaranteeError) as refused:
            begin(*TABLE, "fp <= 0.1%", ledger=ledger).accept()
        assert not refused.value.used_up
        assert not ledger.read()
        assert certified(begin(*TABLE, ledger=ledger), confidence=0.9)

    def test_each_dialog_has_a_ledger_of_its_own_by_default(self):
        assert [certified(begin(*TABLE, seed=seed)).number for seed in range(2)] == [1, 1]

    def test_a_saved_dialog_keeps_its_ledger(self, tmp_path):
        dialog = begin(*TABLE)
        dialog.accept()
        dialog.save(tmp_path / "dialog.skops")
        again = Dialog.load(tmp_path / "dialog.skops")
        again.prefer("fn <= 20%", strategies=["move"])
        assert not certified(again)
        start, steps = dialog.dump_start(), [dialog.dump_step(1)]
        models = [dialog.accepted[0].model.to_bytes()]
        restored = Dialog.restore(start, steps, models, dialog.dump_state())
        restored.prefer("fn <= 20%", strategies=["move"])
        assert not certified(restored)

    def test_an_older_state_takes_nothing_from_a_shared_ledger(self):
        ledger = Ledger()
        dialog = begin(*TABLE)
        state = dialog.dump_state()
        dialog.ledger = ledger
        assert certified(begin(*TABLE, ledger=ledger))
        dialog.update(state=state)
        dialog.prefer("fn <= 20%", strategies=["move"])
        assert not certified(dialog)


class TestRecertify:
    def test_without_a_ledger_each_certificate_is_the_first(self):
        model = begin(*TABLE).accept()
        for confidence in (0.95, 0.9):
            new = model.recertify(*samples(300, 7), confidence=confidence).certificate_
            assert (new.number, new.delta) == (1, pytest.approx(1 - confidence))
        with pytest.raises(ParameterError, match="reserve"):
            model.recertify(*samples(300, 7), reserve=True)

    def test_the_same_samples_are_used_up(self):
        ledger, new = Ledger(), samples(300, 7)
        models = [begin(*TABLE, seed=seed).accept() for seed in range(3)]
        first = models[0].recertify(*new, ledger=ledger)
        assert (first.certificate_.number, first.certificate_.delta) == (1, pytest.approx(0.05))
        again = models[0].recertify(*new, ledger=ledger)  # the same request
        assert again.certificate_ == first.certificate_
        for model in models[1:]:
            with pytest.raises(GuaranteeError) as refused:
                model.recertify(*new, ledger=ledger)
            assert refused.value.code == "used_up"
        assert models[1].recertify(*samples(300, 8), ledger=ledger).certificate_.number == 1

    @pytest.mark.core
    def test_those_that_reserve_share_the_error_probability(self):
        ledger, new = Ledger(), samples(300, 7)
        found = [
            begin(*TABLE, seed=seed)
            .accept()
            .recertify(*new, ledger=ledger, reserve=True)
            .certificate_
            for seed in range(3)
        ]
        assert [one.number for one in found] == [1, 2, 3]
        assert [one.delta for one in found] == pytest.approx([0.025, 0.0125, 0.00625])
        assert [use.outcome for use in found[2].earlier] == ["certified", "certified"]

    def test_a_dialog_and_a_recertification_share_the_account(self):
        ledger, new = Ledger(), samples(300, 7)
        model = begin(*TABLE).accept()
        assert begin(*TABLE, "fn <= 20%", ledger=ledger).accept(*new)
        with pytest.raises(GuaranteeError) as refused:
            model.recertify(*new, ledger=ledger)
        assert refused.value.code == "used_up"


class TestRows:
    """A ledger by itself: which rows it knows, and for what."""

    def used(self, ledger, X, name, target=None, **options):
        """The grant for rows; None if they are used up."""
        ledger.target = target
        options = {"preference": "fp <= 5%", "delta": 0.05, **options}
        try:
            with ledger.use(RowSample.of(X), name=name, **options) as grant:
                return grant
        except GuaranteeError as error:
            if error.code != "used_up":
                raise
            return None

    def test_each_target_has_accounts_of_its_own(self):
        ledger, X = Ledger(), TABLE[0]
        assert self.used(ledger, X, "a", "y")
        assert self.used(ledger, X, "b", "z")
        assert not self.used(ledger, X, "c", "y")
        assert [account.target for account in ledger.snapshot().read()] == ["y"]

    @pytest.mark.parametrize("in_file", [False, True])
    def test_they_are_known_in_any_order_of_rows_and_columns(self, tmp_path, in_file):
        frame = DataFrame(TABLE[0], columns=["a", "b"])
        ledger = FileLedger(tmp_path / "ledger.json") if in_file else Ledger()
        assert self.used(ledger, frame, "first")
        for again in (frame[["b", "a"]], frame[::-1], frame[:200], concat([frame, frame[:50]])):
            assert not self.used(ledger, again, "other")
        assert self.used(ledger, frame.rename(columns={"a": "b", "b": "a"}), "other")
        assert self.used(ledger, frame + 1, "other")

    def test_a_quarter_of_the_rows_is_enough_and_less_is_not(self):
        rows = np.arange(400.0)[:, None]
        for known, is_free in ((100, False), (99, True), (0, True)):
            ledger = Ledger()
            assert self.used(ledger, rows, "first")
            shifted = rows + 400 - known
            assert bool(self.used(ledger, shifted, "other")) == is_free

    def test_independent_rows_of_few_values_are_known_by_how_often_they_occur(self):
        rng = np.random.default_rng(0)
        one, other = (rng.integers(0, 4, (800, 2)).astype(float) for _ in range(2))
        for counted, known in ((True, 0.0), (False, 1.0)):
            sample = RowSample.of(one, counted=counted)
            assert sample.known_fraction(RowSample.of(one[::-1], counted=counted)) == 1
            found = sample.known_fraction(RowSample.of(other, counted=counted))
            assert found == pytest.approx(known, abs=0.2)

    def test_the_same_request_gets_the_same_again_and_each_refusal_counts(self):
        ledger, X = Ledger(), TABLE[0]
        sample, options = RowSample.of(X), {"preference": "fp <= 5%", "delta": 0.05}
        assert self.used(ledger, X, "a", reserve=True).part == 0.025
        assert self.used(ledger, X, "a").part == 0.025
        refusal = GuaranteeError("no", code="not_supported", used_up=True)
        with pytest.raises(GuaranteeError), ledger.use(sample, name="b", reserve=True, **options):
            raise refusal
        assert refusal.fields["use_number"] == 2
        grant = self.used(ledger, X, "c")
        assert (grant.part, grant.number) == (pytest.approx(0.0125), 3)
        assert [use.outcome for use in grant.earlier] == ["certified", "refused"]
        assert not self.used(ledger, X, "d")

    def test_what_never_used_the_labels_is_no_use(self):
        ledger, X = Ledger(), TABLE[0]
        sample, options = RowSample.of(X), {"preference": "fp <= 5%", "delta": 0.05}
        too_few = GuaranteeError("no", code="too_few_samples")
        with pytest.raises(GuaranteeError), ledger.use(sample, name="a", **options):
            raise too_few
        assert ledger.read() == ()
        assert self.used(ledger, X, "b")
        with pytest.raises(GuaranteeError), ledger.use(sample, name="b", **options):
            raise too_few
        assert [len(account.uses) for account in ledger.read()] == [1]

    def test_a_use_is_recorded_before_the_labels_are_used(self, tmp_path):
        path, X = tmp_path / "ledger.json", TABLE[0]
        options = {"name": "a", "preference": "fp <= 5%", "delta": 0.05}
        with FileLedger(path).use(RowSample.of(X), **options):
            (account,) = FileLedger(path).read()
            assert [use.outcome for use in account.uses] == ["unfinished"]
        (account,) = FileLedger(path).read()
        assert [use.outcome for use in account.uses] == ["certified"]

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "[]",
            "{}",
            "null",
            '"x"',
            "[" * 100_000,
            '{"format": ' + "9" * 10_000 + "}",
            '{"format": 1, "accounts": []}',  # of an earlier version
            '{"format": 2, "accounts": []}',
            '{"format": 2, "accounts": {}}',
            "\xff",
            "truncated",
            "another part",
            "another outcome",
            "no accounts",
        ],
    )
    def test_a_damaged_file_is_not_an_empty_ledger(self, tmp_path, content):
        path = tmp_path / "ledger.json"
        assert self.used(FileLedger(path), TABLE[0], "a")
        written = path.read_text()
        changes = {
            "truncated": written[:-100],
            "another part": written.replace('"part": 0.05', '"part": 0.01'),
            "another outcome": written.replace('"certified"', '"refused"'),
            "no accounts": re.sub(r"\[.*\]", "[]", written, flags=re.DOTALL),
        }
        content = changes.get(content, content)
        assert content != written
        path.write_bytes(content.encode("latin-1"))
        for act in (FileLedger(path).read, lambda: self.used(FileLedger(path), TABLE[0], "b")):
            with pytest.raises(FileError) as refused:
                act()
            assert (refused.value.code, refused.value.fields["name"]) == ("damaged", str(path))
        assert path.read_bytes() == content.encode("latin-1")

    def test_others_wait_while_a_file_is_open(self, tmp_path):
        ledgers = [FileLedger(tmp_path / "ledger.json") for _ in range(2)]
        started, entered = threading.Event(), threading.Event()

        def enter():
            started.set()
            with ledgers[1].open():
                entered.set()

        waiting = threading.Thread(target=enter)
        with ledgers[0].open():
            waiting.start()
            assert started.wait(60)
            assert not entered.wait(0.2)
        waiting.join(60)
        assert entered.is_set()


def test_a_pickled_ledger_can_be_used():
    ledger = pickle.loads(pickle.dumps(Ledger("y")))  # noqa: S301 - our own
    rows = RowSample.of(np.arange(20.0)[:, None])
    with ledger.use(rows, name="a", preference="fp <= 5%", delta=0.05) as grant:
        assert grant.part == 0.05
    assert pickle.loads(pickle.dumps(ledger)).account(rows).used_up  # noqa: S301 - our own


class TestFile:
    def test_it_is_shared_by_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert certified(begin(*TABLE, ledger=FileLedger("ledger.json")))
        monkeypatch.chdir("/")
        path = tmp_path / "ledger.json"
        assert not certified(begin(*TABLE, seed=1, ledger=FileLedger(path)))

    def test_a_saved_dialog_names_no_file(self, tmp_path):
        folder = tmp_path / "ledgers"
        folder.mkdir()
        begin(*TABLE, ledger=FileLedger(folder / "ledger.json")).save(tmp_path / "dialog.skops")
        for file in folder.iterdir():
            file.unlink()
        assert certified(Dialog.load(tmp_path / "dialog.skops"))
        assert not list(folder.iterdir())

    def test_a_saved_dialog_knows_what_was_used(self, tmp_path):
        dialog = begin(*TABLE, ledger=FileLedger(tmp_path / "ledger.json", "spam"))
        dialog.accept()
        dialog.save(tmp_path / "dialog.skops")
        (tmp_path / "ledger.json").unlink()
        again = Dialog.load(tmp_path / "dialog.skops")
        again.prefer("fn <= 20%", strategies=["move"])
        assert not certified(again)

    def test_a_loaded_dialog_can_be_connected_again(self, tmp_path):
        ledger = FileLedger(tmp_path / "ledger.json")
        dialog = begin(*TABLE, ledger=ledger)
        dialog.save(tmp_path / "dialog.skops")
        assert isinstance(dialog.ledger, FileLedger)
        dialog.accept()
        again = Dialog.load(tmp_path / "dialog.skops")
        again.prefer("fn <= 20%", strategies=["move"])
        again.check_accept()  # it was saved before the use
        again.ledger = ledger
        assert not certified(again)

    def test_a_link_to_the_file_is_the_same_ledger(self, tmp_path):
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        link, path = tmp_path / "two/link.json", tmp_path / "one/ledger.json"
        link.symlink_to(path)
        assert certified(begin(*TABLE, ledger=FileLedger(link)))
        assert not certified(begin(*TABLE, seed=1, ledger=FileLedger(path)))
        assert [file.name for file in link.parent.iterdir()] == ["link.json"]  # no lock of its own

    def test_spaces_and_line_ends_of_the_file_are_free(self, tmp_path):
        path = tmp_path / "ledger.json"
        assert certified(begin(*TABLE, ledger=FileLedger(path)))
        path.write_text(re.sub(r"\n *", "\r\n\t", path.read_text()))
        assert not certified(begin(*TABLE, seed=1, ledger=FileLedger(path)))

    @posix
    @pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
    def test_a_lock_that_is_no_regular_file_is_refused_at_once(self, tmp_path, kind):
        lock, other = tmp_path / ".ledger.json.lock", tmp_path / "other"
        if kind == "link":
            lock.symlink_to(other)
        elif kind == "folder":
            lock.mkdir()
        else:
            os.mkfifo(lock)
            reader = os.open(lock, os.O_RDONLY | os.O_NONBLOCK)  # or a writer could wait for one
        with pytest.raises(OSError, match=re.escape(lock.name)):
            FileLedger(tmp_path / "ledger.json").read()
        assert not other.exists()
        if kind == "pipe":
            os.close(reader)

    @posix
    def test_a_lock_is_for_all_who_may_write_and_never_changed(self, tmp_path):
        path, other = tmp_path / "ledger.json", tmp_path / "other"
        before = os.umask(0o002)
        try:
            FileLedger(path).read()
        finally:
            os.umask(before)
        lock = tmp_path / ".ledger.json.lock"
        assert stat.S_IMODE(lock.stat().st_mode) == 0o664
        lock.unlink()
        other.write_text("of somebody else")
        lock.hardlink_to(other)
        assert certified(begin(*TABLE, ledger=FileLedger(path)))
        assert other.read_text() == "of somebody else"

    def test_a_place_that_cannot_be_written_is_refused_at_once(self, tmp_path):
        with pytest.raises(ParameterError, match="path"):
            FileLedger(tmp_path / "missing/ledger.json")
        with pytest.raises(OSError, match="folder"):
            FileLedger(tmp_path)

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", '{"format": 9, "accounts": []}', '{"format": 1}', "truncated"]
    )
    def test_a_damaged_file_is_an_error_and_stays_as_it_is(self, tmp_path, content):
        path = tmp_path / "ledger.json"
        certified(begin(*TABLE, ledger=FileLedger(path)))
        content = path.read_text()[:-100] if content == "truncated" else content
        path.write_text(content)
        dialog = begin(*TABLE, "fn <= 20%", ledger=FileLedger(path))
        with pytest.raises(FileError) as refused:
            dialog.accept()
        assert (refused.value.code, refused.value.fields["name"]) == ("damaged", str(path))
        assert path.read_text() == content
        assert not dialog.accepted

    def test_a_file_that_is_gone_is_no_empty_ledger(self, tmp_path):
        path = tmp_path / "ledger.json"
        dialog = begin(*TABLE, ledger=FileLedger(path))
        dialog.accept()
        path.unlink()
        dialog.prefer("fn <= 20%", strategies=["move"])
        for act in (dialog.accept, lambda: dialog.save(tmp_path / "dialog.skops")):
            with pytest.raises(FileError) as refused:
                act()
            assert refused.value.code == "missing"

    def test_a_process_that_is_killed_leaves_its_use(self, tmp_path):
        """Killed between the use and its outcome; the same request again is the same use."""
        path = tmp_path / "ledger.json"
        killed = run_python(KILLED, path)
        assert killed.returncode == -signal.SIGKILL
        (account,) = FileLedger(path).read()
        assert [(use.preference, use.outcome) for use in account.uses] == [
            ("fp <= 20%", "unfinished")
        ]
        assert not certified(begin(*TABLE, "fn <= 20%", ledger=FileLedger(path)))
        assert certified(begin(*TABLE, ledger=FileLedger(path))).number == 1
        (account,) = FileLedger(path).read()
        assert [use.outcome for use in account.uses] == ["certified"]

    def test_of_several_processes_at_once_one_gets_it(self, tmp_path):
        path = tmp_path / "ledger.json"
        started = [start_python(ACCEPTING, path, str(seed)) for seed in range(3)]
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        outcomes = [process.communicate(timeout=60)[0].strip() for process in started]
        assert sorted(outcomes) == ["certified", "used_up", "used_up"]
        (account,) = FileLedger(path).read()
        assert len(account.uses) == 1


@pytest.mark.parametrize("in_file", [False, True])
def test_of_several_threads_at_once_one_gets_it(tmp_path, in_file):
    ledger = FileLedger(tmp_path / "ledger.json") if in_file else Ledger()
    dialogs = [begin(*TABLE, seed=seed, ledger=ledger) for seed in range(8)]
    barrier = threading.Barrier(len(dialogs))

    def accept(dialog):
        barrier.wait()
        return certified(dialog)

    with ThreadPoolExecutor(len(dialogs)) as pool:
        found = list(pool.map(accept, dialogs))
    assert sum(one is not None for one in found) == 1


CHILD = """
import sys
from sklearn.linear_model import LogisticRegression
from tests.steer.test_ledger import TABLE, begin, certified
from margrave.steer import FileLedger, _certify
"""
KILLED = (
    CHILD
    + """
import os, signal
_certify.issue_certificate = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
begin(*TABLE, ledger=FileLedger(sys.argv[1])).accept()
"""
)
ACCEPTING = (
    CHILD
    + """
dialog = begin(*TABLE, seed=int(sys.argv[2]), ledger=FileLedger(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print("certified" if certified(dialog) else "used_up")
"""
)


def start_python(script, *arguments):
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_python(script, *arguments):
    process = start_python(script, *arguments)
    process.communicate(timeout=60)
    return process


@pytest.mark.parametrize(
    ("first", "n", "share"),
    [(40_000, 20_000, 0), (30_000, 30_000, 1 / 3), (10_000, 40_000, 3 / 4), (5, 500, 1)],
)
def test_the_share_of_known_rows_is_estimated_for_large_tables(first, n, share):
    X = np.random.default_rng(0).normal(size=(60_000, 1))
    account, rows = RowSample.of(X[:40_000]), RowSample.of(X[first : first + n])
    assert account.known_fraction(rows) == pytest.approx(share, abs=0.05)


def test_a_small_part_of_a_large_table_is_recognized():
    X = np.random.default_rng(0).normal(size=(500_000, 1))
    account = RowSample.of(X)
    for start in range(0, 10_000, 500):
        assert account.known_fraction(RowSample.of(X[start : start + 500])) == 1


def test_rows_of_a_few_discrete_columns_are_told_apart_by_how_often_they_occur():
    def drawn(seed, n=3000):
        random = np.random.default_rng(seed)
        y = random.integers(0, 2, n)
        return random.integers(0, 3, (n, 4)) + y[:, None], y

    ledger = Ledger()

    def accepted(X, y, seed):
        dialog = Dialog.from_data(
            X, y, committee=GaussianNB(), duplicates="independent", random_state=seed, ledger=ledger
        )
        dialog.prefer("fp <= 60%", strategies=["move"])
        return dialog.accept()

    X, y = drawn(0)
    assert accepted(X, y, 0).certificate_.number == 1
    for rows in (np.arange(3000), np.arange(1, 3000), np.append(np.arange(3000), 7)):
        with pytest.raises(GuaranteeError) as refused:
            accepted(X[rows], y[rows], 1)
        assert refused.value.code == "used_up"
    assert accepted(*drawn(1), 0).certificate_.number == 1  # new rows with the same values
