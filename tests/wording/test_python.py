"""What a user of the library sees printed, word for word.

A changed sentence is no fault. Read the change, then refresh the stored texts with `make wording`
(`pytest tests/wording --full --snapshot-update`).
"""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.wording.masking import masked

from margrave._messages import missing_extra
from margrave.confusion import Preference
from margrave.steer import Dialog, Frontier, GuaranteeError, SteeredClassifier
from margrave.steer._certificate import describe_bound

pytestmark = pytest.mark.core

MOVE = ("move",)
COUNTS_AND_RATES = (
    "fp <= 5, fn <= 10%, rejected <= 2%, errors <= 20, accuracy >= 80%, recall >= 70%",
    "precision >= 70%, recall(ham) >= 60%, alarms <= 40%, errors(ham -> spam) <= 9",
)
NO_PREFERENCES = ("", "fp", "fpp <= 2", "fp <= x", "fp <= 200%", "fp = 2", "recall(spam >= 2")
NOT_FOR_THESE = ("recall(eggs) >= 1%", "fp <= 100000", "rejected(eggs) <= 1%")


def points(n=400, seed=0):
    """A cloud of points for each class."""
    rng = np.random.default_rng(seed)
    spam = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * spam[:, None], np.where(spam, "spam", "ham")


@pytest.fixture(scope="module")
def start():
    """A dialog before its first step."""
    members = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]
    return Dialog.from_data(*points(), committee=members, certify=0.3, random_state=0)


@pytest.fixture(scope="module")
def dialog(start):
    """A dialog with replies of each kind."""
    dialog = deepcopy(start)
    dialog.prefer("fp <= 10%", strategies=MOVE)
    dialog.prefer("fp <= 30%", strategies=MOVE)
    dialog.prefer("rejected <= 20%, fp <= 5%", strategies=("reject",))
    dialog.prefer("fp <= 40%, fn <= 0", strategies=MOVE)
    return dialog


def refusal(call, *arguments, **options):
    """The message of an error."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is stored
        call(*arguments, **options)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_replies(dialog, snapshot):
    assert [masked(str(reply)) for reply in dialog.history] == snapshot


def test_changes_and_what_to_ask_instead(dialog, snapshot):
    reply = dialog.history[-1]
    assert [masked(str(one)) for one in (*reply.changes, reply.instead)] == snapshot


def test_dialog(dialog, snapshot):
    shown = (repr(dialog), str(dialog), dialog.support(), str(dialog.compare(1, 3)))
    assert [masked(one) for one in shown] == snapshot


def test_confusion(dialog, snapshot):
    matrix = dialog.history[0].after
    assert [masked(one) for one in (repr(matrix), str(matrix))] == snapshot


def test_frontier(snapshot):
    scores = {"first": [1, 2, 4, 3, 5, 6], "second": [1, 2, 3, 4, 6, 5]}
    frontier = Frontier.of(scores, ["ham"] * 3 + ["spam"] * 3, positive="spam")
    assert masked(str(frontier)) == snapshot


def test_certificate_and_checks(start, snapshot):
    dialog = deepcopy(start)
    dialog.prefer("fp <= 20", strategies=MOVE)
    model = dialog.accept()
    X, y = points(seed=1)
    one = X[y == "ham"][:1]
    checks = [model.check(X, y), model.check(X, np.full_like(y, "ham")), model.check(one, ["ham"])]
    assert [masked(str(shown)) for shown in (model.certificate_, *checks)] == snapshot


def test_model_card_without_a_certificate(snapshot):
    model = SteeredClassifier(LogisticRegression()).fit(*points())
    assert model.certificate_ is None
    assert masked(model.model_card()) == snapshot


def test_preferences(dialog, snapshot):
    matrix, shown = dialog.history[0].after, []
    for text in COUNTS_AND_RATES:
        preference = Preference(text)
        shown += [repr(preference), str(preference)]
        shown += [describe_bound(bound, matrix) for bound in preference.all_bounds]
    assert [masked(one) for one in shown] == snapshot


def test_refused_preferences(dialog, snapshot):
    shown = {text: refusal(Preference, text) for text in NO_PREFERENCES}
    shown |= {text: refusal(dialog.prefer, text) for text in NOT_FOR_THESE}
    shown["strategies"] = refusal(dialog.prefer, "fp <= 1%", strategies=("mov",))
    assert {masked(text): masked(message) for text, message in shown.items()} == snapshot


def test_refused_guarantees(start, snapshot):
    shown = {}
    for text in ("fp <= 0.1%", "fp <= 5%, fn <= 5%", "errors <= 1%", "precision >= 99.9%"):
        dialog = deepcopy(start)
        dialog.prefer(text, strategies=MOVE)
        with pytest.raises(GuaranteeError) as caught:
            dialog.accept()
        shown[text] = str(caught.value)
    assert {masked(text): masked(message) for text, message in shown.items()} == snapshot


def test_missing_extra(snapshot):
    assert missing_extra("margrave.scale", "distributed", "dask") == snapshot
