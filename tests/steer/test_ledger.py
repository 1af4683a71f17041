"""What certify samples may still be used for: shares of δ, and accepting twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from margrave import ParameterError
from margrave.steer import Dialog, GuaranteeError, _certify
from margrave.steer._ledger import Account

SPENT = r"\breserve\b"  # the parameter that would have left some; no other refusal names it


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


class TestAccount:
    @given(st.floats(1e-6, 0.5), st.lists(st.booleans(), max_size=40))
    def test_what_is_used_up_is_never_more_than_there_is(self, delta, reserves):
        account = Account("x", delta)
        for reserve in reserves:
            if not account.left:
                with pytest.raises(GuaranteeError, match=SPENT):
                    account.next_part(delta, reserve)
                continue
            share = account.next_part(delta, reserve)
            assert 0 < share <= delta
            account = account.with_used(share)
        assert sum(account.used) <= delta * (1 + 1e-12)
        assert account.left >= 0

    def test_shares_are_a_half_a_quarter_an_eighth(self):
        account = Account("x", 0.5)
        for _ in range(4):
            account = account.with_used(account.next_part(0.5, reserve=True))
        assert account.used == (0.25, 0.125, 0.0625, 0.03125)
        assert account.next_part(0.5, reserve=False) == account.left == 0.03125
        assert account.with_used(account.left).left == 0

    def test_all_at_once_leaves_nothing(self):
        account = Account("x", 0.05)
        account = account.with_used(account.next_part(0.05, reserve=False))
        assert account.used == (0.05,)
        assert account.left == 0
        for reserve in (False, True):
            with pytest.raises(GuaranteeError, match=SPENT) as caught:
                account.next_part(0.05, reserve)
            assert not caught.value.used_up

    def test_spending_leaves_the_account_as_it_was(self):
        account = Account("x", 0.05)
        account.with_used(0.05)
        assert account.used == ()

    def test_another_confidence_is_refused(self):
        with pytest.raises(GuaranteeError, match=r"\b0\.95\b.*\b0\.99\b"):
            Account("x", 1 - 0.95).next_part(1 - 0.99, reserve=False)

    def test_the_same_confidence_but_for_rounding_is_not(self):
        assert Account("x", 1 - 0.95).next_part(0.05, reserve=False) == 1 - 0.95


class TestAccepting:
    def test_the_first_takes_all_and_a_second_is_refused(self, dialog):
        first = dialog.accept(*CERTIFY).certificate_
        assert (first.delta, first.number) == (pytest.approx(0.05), 1)
        dialog.prefer("fn <= 10%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=SPENT):
            dialog.accept(*CERTIFY)
        with pytest.raises(GuaranteeError, match=SPENT):
            dialog.accept(*CERTIFY, reserve=True)

    def test_fresh_samples_are_not_used_up(self, dialog):
        dialog.accept(*CERTIFY)
        dialog.prefer("fn <= 10%", strategies=["move"])
        again = dialog.accept(*samples(400, 3)).certificate_
        assert (again.delta, again.number) == (pytest.approx(0.05), 1)

    def test_the_same_step_gives_the_same_model_and_spends_once(self, dialog):
        first = dialog.accept(*CERTIFY, reserve=True)
        assert dialog.accept(*CERTIFY, reserve=True) is first
        assert dialog.accept(*CERTIFY) is first
        dialog.prefer("fn <= 10%", strategies=["move"])
        second = dialog.accept(*CERTIFY, reserve=True)
        dialog.goto(1)
        assert dialog.accept(*CERTIFY) is first
        assert second.certificate_.number == 2

    def test_reserving_leaves_shares_for_others(self, dialog):
        spent = []
        for number, text in enumerate(["fp <= 10%", "fn <= 10%", "fp <= 20%"], 1):
            dialog.prefer(text, strategies=["move"])
            certificate = dialog.accept(*CERTIFY, reserve=True).certificate_
            assert certificate.number == number
            assert certificate.confidence == 0.95
            assert certificate.guarantees[0].delta == certificate.delta
            spent.append(certificate.delta)
        assert spent == pytest.approx([0.025, 0.0125, 0.00625])
        dialog.prefer("fn <= 20%", strategies=["move"])
        last = dialog.accept(*CERTIFY).certificate_
        assert last.delta == pytest.approx(0.00625)
        assert sum(spent) + last.delta <= 0.05 * (1 + 1e-12)
        dialog.prefer("fn <= 25%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=SPENT):
            dialog.accept(*CERTIFY, reserve=True)

    def test_less_to_spend_is_a_stricter_threshold(self, dialog):
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

    def test_a_refusal_by_size_spends_nothing(self, dialog):
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

    def test_a_refusal_for_want_of_a_class_spends_nothing(self, dialog):
        X, y = CERTIFY
        ham = y == "ham"
        for _ in range(2):
            with pytest.raises(GuaranteeError, match=r"\bspam\b"):
                dialog.accept(X[ham], y[ham])

    @pytest.mark.parametrize("text", ["precision >= 98%", "fp <= 3%, fn <= 3%"])
    def test_a_test_that_failed_spends(self, dialog, text):
        dialog.prefer(text, strategies=["move"])
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept(*CERTIFY)
        assert caught.value.used_up
        dialog.prefer("fp <= 10%", strategies=["move"])
        with pytest.raises(GuaranteeError, match=SPENT):
            dialog.accept(*CERTIFY)

    def test_a_test_that_failed_spends_its_share_only(self, dialog):
        dialog.prefer("precision >= 98%", strategies=["move"])
        with pytest.raises(GuaranteeError):
            dialog.accept(*CERTIFY, reserve=True)
        dialog.prefer("fp <= 10%", strategies=["move"])
        certificate = dialog.accept(*CERTIFY).certificate_
        assert (certificate.delta, certificate.number) == (pytest.approx(0.025), 2)

    def test_a_test_that_failed_can_be_asked_again_and_spends_again(self, dialog):
        dialog.prefer("precision >= 98%", strategies=["move"])
        for _ in range(3):
            with pytest.raises(GuaranteeError, match="precision >= 98%"):
                dialog.accept(*CERTIFY, reserve=True)
        dialog.prefer("fp <= 20%", strategies=["move"])
        assert dialog.accept(*CERTIFY).certificate_.delta == pytest.approx(0.05 / 8)

    @pytest.mark.parametrize("as_given", ["other order", "as lists"])
    def test_samples_are_known_by_what_is_in_them(self, dialog, as_given):
        """The same rows again, told a little differently, are as spent as before."""
        X, y = CERTIFY
        dialog.accept(X, y)
        dialog.prefer("fn <= 10%", strategies=["move"])
        again = (X[::-1], y[::-1]) if as_given == "other order" else (X.tolist(), y.tolist())
        with pytest.raises(GuaranteeError, match=SPENT):
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
    with pytest.raises(GuaranteeError, match=SPENT):
        dialog.accept(*CERTIFY)


def test_support_follows_what_is_left_of_the_certification_set():
    dialog = Dialog.from_data(*samples(600, 3), committee=LogisticRegression(), random_state=0)
    dialog.prefer("fp <= 20%", strategies=["move"])
    whole = dialog.support()
    dialog.accept(reserve=True)
    half = dialog.support()
    dialog.goto(0)
    dialog.prefer("fp <= 30%", strategies=["move"])
    dialog.accept()
    assert len({whole, half, dialog.support()}) == 3


class TestChecking:
    @pytest.fixture
    def parted(self):
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
            ("fp <= 3.5%, fn <= 40%", "too_few_samples"),  # each has half of the error probability
            ("recall >= 99%", "too_few_samples"),
            ("precision >= 99%", "too_few_samples"),
            ("fp <= 20%, rejected <= 1%", "too_few_samples"),
            ("fp <= 100%", "trivial"),
        ],
    )
    def test_what_cannot_be_proved_is_known_before(self, parted, text, code):
        """Accepting refuses it for the same reason, and uses nothing."""
        parted.prefer(text, strategies=["move", "reject"])
        if code is None:
            parted.check_accept()
            return
        with pytest.raises(GuaranteeError) as checked:
            parted.check_accept()
        with pytest.raises(GuaranteeError) as refused:
            parted.accept()
        assert checked.value.to_dict() == refused.value.to_dict()
        assert (checked.value.code, refused.value.used_up) == (code, False)
        assert parted.certification.used == ()

    def test_it_depends_on_the_confidence_and_on_what_is_left(self, parted):
        parted.prefer("fp <= 3.5%", strategies=["move"])
        parted.check_accept(confidence=0.9, reserve=True)
        for options in ({"confidence": 0.99}, {"reserve": True}):
            with pytest.raises(GuaranteeError) as refused:
                parted.check_accept(**options)
            assert refused.value.code == "too_few_samples"
        parted.prefer("fp <= 30%", strategies=["move"])
        parted.accept()
        parted.check_accept()  # the same model again
        parted.goto(1)
        with pytest.raises(GuaranteeError) as refused:
            parted.check_accept()
        assert refused.value.code == "used_up"

    def test_what_is_missing_is_named(self, dialog, parted):
        for one, code in ((dialog, "no_certification_set"), (parted, "no_preference")):
            with pytest.raises(GuaranteeError) as refused:
                one.check_accept()
            assert refused.value.code == code
        with pytest.raises(ParameterError, match="confidence"):
            parted.check_accept(confidence=1.5)
