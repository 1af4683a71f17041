"""The steered classifier as an estimator of scikit-learn's, with and without a certificate."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from margrave import Confusion
from margrave.confusion import Preference, PreferenceError
from margrave.martingale import NotMetWarning, TunableLogistic
from margrave.steer import Dialog, GuaranteeError, SteeredClassifier, _start

RANDOM = np.random.default_rng(12)
N = 500
CODES = RANDOM.integers(0, 2, N)
Y = np.array(["ham", "spam"])[CODES]
X = RANDOM.normal(size=(N, 3)) + CODES[:, None] * [1.5, 1.0, 0.0]
CODES3 = RANDOM.integers(0, 3, N)
Y3 = np.array(["ash", "birch", "cedar"])[CODES3]
X3 = RANDOM.normal(size=(N, 3)) + 2.5 * np.eye(3)[CODES3]
PAIR = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]


def steered(estimator=None, **params):
    return SteeredClassifier(
        PAIR if estimator is None else estimator, **{"random_state": 0, "confidence": 0.8} | params
    )


@pytest.fixture(scope="module")
def guaranteed():
    """Made once and never changed by a test."""
    return steered(preference="fn <= 20%").fit(X, Y)


@pytest.fixture(scope="module")
def bare():
    return SteeredClassifier(LogisticRegression()).fit(X, Y)


@pytest.fixture(scope="module")
def doubting():
    """One that gives no answer to some."""
    wanted = "fp <= 20%, fn <= 20%, rejected <= 50%"
    return steered(LogisticRegression(), preference=wanted).fit(X, Y)


# Training


def test_fit_keeps_to_the_preference_with_a_guarantee(guaranteed):
    certificate = guaranteed.certificate_
    assert certificate.preference == "fn <= 20%"
    assert certificate.confidence == 0.8
    (guarantee,) = certificate.guarantees
    assert guarantee.rate < guarantee.limit == 0.2
    assert guaranteed.classes_.tolist() == ["ham", "spam"]
    assert guaranteed.n_features_in_ == 3
    assert guaranteed.score(X, Y) > 0.6


def test_fit_is_a_dialog_with_one_request(guaranteed):
    dialog = Dialog.from_data(
        X, Y, committee=PAIR, guarantee="fn <= 20%", confidence=0.8, random_state=0
    )
    dialog.prefer("fn <= 20%")
    model = dialog.accept(confidence=0.8)
    assert model.certificate_ == guaranteed.certificate_
    planned = dialog.plan().chosen.certify_by_class
    assert model.certificate_.confusion.counts.sum(axis=1).tolist() == list(planned.values())
    np.testing.assert_array_equal(
        model.decision_function(X), guaranteed.decision_function(X), strict=True
    )


def test_a_preference_may_be_one():
    model = steered(GaussianNB(), preference=Preference("fn <= 20%")).fit(X, Y)
    assert model.certificate_.preference == "fn <= 20%"


def test_without_a_preference_it_is_the_estimator_itself(bare):
    own = LogisticRegression().fit(X, Y)
    np.testing.assert_array_equal(bare.predict(X), own.predict(X))
    np.testing.assert_allclose(bare.predict_proba(X), own.predict_proba(X), atol=1e-8)
    assert bare.certificate_ is None


def test_without_a_certificate_it_is_the_reply():
    model = steered(preference="fn <= 20%", certify=None).fit(X, Y)
    assert model.certificate_ is None
    dialog = Dialog.from_data(X, Y, committee=PAIR, certify=None, random_state=0)
    reply = dialog.prefer("fn <= 20%")
    np.testing.assert_array_equal(model.predict(X), reply.model.predict(X))


def test_training_again_forgets_what_was_learned_before(guaranteed):
    model = clone(guaranteed).fit(X, Y)
    model.set_params(preference=None, estimator=GaussianNB()).fit(X3[:, :2], Y3)
    assert model.classes_.tolist() == ["ash", "birch", "cedar"]
    assert model.certificate_ is None
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match=r"SteeredClassifier\.check"):
        model.check(X3[:, :2], Y3)


def test_the_estimator_that_is_given_stays_as_it_is():
    given = LogisticRegression()
    model = steered(given, preference="fn <= 20%").fit(X, Y)
    assert model.estimator is given
    assert not hasattr(given, "coef_")


@pytest.mark.parametrize(
    ("params", "kind", "match"),
    [
        ({"preference": "fn <="}, PreferenceError, "fn <="),
        ({"preference": "fp(eggs) <= 5%"}, PreferenceError, "'eggs'"),
        ({"preference": "fn <= 0.01%"}, GuaranteeError, r"fn <= 0\.01%"),
        ({"preference": "fn <= 9%", "strategies": ["walk"]}, ValueError, r"\bstrategies\b.*'walk'"),
        ({"preference": "fn <= 9%", "positive": "eggs"}, ValueError, r"\bpositive\b.*'eggs'"),
        ({"preference": "fn <= 9%", "confidence": 7}, ValueError, r"\bconfidence\b.*\b7\b"),
        ({"preference": "fn <= 9%", "certify": 2}, ValueError, r"\bcertify\b.*\b2\b"),
        ({"positive": "eggs"}, ValueError, r"\bpositive\b.*'eggs'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_parameters_that_make_no_sense(params, kind, match):
    with pytest.raises(kind, match=match):
        steered(GaussianNB(), **params).fit(X, Y)


# As an estimator


def test_parameters_clones_and_changes(guaranteed):
    copied = clone(guaranteed)
    assert copied.get_params()["preference"] == "fn <= 20%"
    assert copied.get_params()["confidence"] == 0.8
    assert not hasattr(copied, "scorer_")
    changed = steered(LogisticRegression()).set_params(estimator__C=0.01, preference="fp <= 30%")
    changed.fit(X, Y)
    assert changed.estimator.C == 0.01
    assert changed.scorer_.committee.members[0].C == 0.01
    assert changed.certificate_.preference == "fp <= 30%"


def test_in_a_pipeline_and_in_cross_validation():
    model = make_pipeline(StandardScaler(), steered(GaussianNB(), preference="fn <= 30%"))
    scores = cross_val_score(model, X, Y, cv=3)
    assert (scores > 0.6).all()
    assert model.fit(X, Y)[-1].certificate_.preference == "fn <= 30%"


def test_in_a_search():
    model = steered(LogisticRegression(), preference="fn <= 30%", certify=None)
    search = GridSearchCV(model, {"preference": ["fn <= 10%", "fn <= 30%"]}, cv=3).fit(X, Y)
    answers = cross_val_predict(search.best_estimator_, X, Y, cv=3)
    assert set(answers) <= {"ham", "spam"}


def test_before_training():
    model = SteeredClassifier(GaussianNB())
    for method in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    for action in (model.model_card, lambda: model.check(X, Y), lambda: model.recertify(X, Y)):
        with pytest.raises(NotFittedError):
            action()


# Answers


@pytest.mark.parametrize("name", ["guaranteed", "bare", "doubting"])
def test_answers_probabilities_and_decisions_agree(request, name):
    model = request.getfixturevalue(name)
    answers, lead = model.predict(X), model.decision_function(X)
    np.testing.assert_array_equal(answers == "spam", lead > 0)
    rejected = answers == model.reject_label_
    assert (lead[rejected] == 0).all()
    assert (lead[answers == "ham"] <= 0).all()
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= 0).all()
    if name != "doubting":
        order = np.argsort(lead, kind="stable")
        assert (np.diff(shares[order, 1]) >= -1e-9).all(), "one order"


def test_a_sample_gets_the_same_answer_in_any_company(guaranteed, doubting):
    for model in (guaranteed, doubting):
        alone = np.concatenate([model.decision_function(row[None]) for row in X[:60]])
        np.testing.assert_array_equal(alone, model.decision_function(X)[:60])


@pytest.mark.parametrize("name", ["guaranteed", "bare"])
def test_scores_are_rounded_so_that_rounding_errors_do_not_decide(request, name):
    scorer = request.getfixturevalue(name).scorer_
    scores = scorer(X)
    np.testing.assert_array_equal(scores, np.round(scores, scorer.decimals))
    nudged = scorer.score_raw(scorer.committee.raw(X) + 1e-14)
    assert (nudged == scores).mean() > 0.99
    assert len(np.unique(scores)) == N, "but samples are still told apart"


def test_the_samples_of_a_dialog_do_not_tip_to_the_other_side_of_the_threshold(guaranteed):
    """A threshold lies on a certification sample, so rounding errors would show first there."""
    scores = guaranteed.scorer_(X)
    at = np.flatnonzero(np.abs(scores - guaranteed.decision_.high) < 1e-6)
    together = guaranteed.predict(X)[at]
    for i, answer in zip(at, together, strict=True):
        assert guaranteed.predict(X[i : i + 1])[0] == answer
        assert guaranteed.predict(X[: i + 1])[-1] == answer


@pytest.mark.parametrize(
    ("labels", "reject"),
    [
        (["ham", "spam"], "rejected"),
        (["rejected", "spam"], "rejected_"),
        ([0, 1], -1),
        ([-1, 1], -2),
        ([False, True], "rejected"),
    ],
    ids=str,
)
def test_what_is_said_where_no_answer_is_given(labels, reject):
    y = np.array(labels)[CODES]
    wanted = "fp <= 15%, fn <= 15%, rejected <= 40%"
    model = steered(LogisticRegression(), preference=wanted, certify=None).fit(X, y)
    assert model.reject_label_ == reject
    answers = model.predict(X)
    assert 0 < (answers == reject).sum() < N
    assert set(answers.tolist()) == {*labels, reject}
    matrix = model.confusion(X, y)
    assert matrix.n_rejected == (answers == reject).sum()
    assert matrix == Confusion.of(y, answers, classes=labels, reject_label=reject)


def test_rejects_count_as_wrong_for_scikit_learn(doubting):
    matrix = doubting.confusion(X, Y)
    assert matrix.n_rejected > 0
    assert doubting.score(X, Y) == pytest.approx(matrix.accuracy)


def test_rejects_are_guaranteed_too(doubting):
    guarantees = {guarantee.bound: guarantee for guarantee in doubting.certificate_.guarantees}
    assert set(guarantees) == {"fp <= 20%", "fn <= 20%", "rejected <= 50%"}
    matrix = doubting.certificate_.confusion
    assert guarantees["rejected <= 50%"].count == matrix.n_rejected
    assert "`rejected`" in doubting.model_card()


def test_decision_values_only():
    model = steered(SVC(), preference="fn <= 20%").fit(X, Y)
    assert not hasattr(model, "predict_proba")
    np.testing.assert_array_equal(model.predict(X) == "spam", model.decision_function(X) > 0)


@pytest.mark.parametrize(
    "estimator", [GaussianNB(), SVC(), PAIR], ids=["probabilities", "decisions", "committee"]
)
def test_three_classes(estimator):
    model = steered(estimator, preference="errors(ash -> birch) <= 15%", strategies=["move"]).fit(
        X3, Y3
    )
    lead = model.decision_function(X3)
    assert lead.shape == (N, 3)
    np.testing.assert_array_equal(model.predict(X3), model.classes_[lead.argmax(axis=1)])
    assert model.certificate_.confusion.positive is None
    (guarantee,) = model.certificate_.guarantees
    assert guarantee.bound == "errors(ash -> birch) <= 15%"
    assert re.findall("ash|birch|cedar", guarantee.sentence) == ["ash", "birch"]
    assert "birch" in model.model_card()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X3).sum(axis=1), 1)


def test_the_first_class_may_be_the_positive_one():
    model = steered(GaussianNB(), preference="fn <= 20%", positive="ham").fit(X, Y)
    assert model.certificate_.confusion.positive == "ham"
    assert re.findall("ham|spam", model.certificate_.guarantees[0].sentence) == ["ham", "spam"]
    assert model.confusion(X, Y).positive == "ham"


# Columns


def test_other_columns_are_refused(guaranteed):
    with pytest.raises(ValueError, match="2 features"):
        guaranteed.predict(X[:, :2])
    with pytest.raises(ValueError, match="Reshape your data"):
        guaranteed.predict(X[0])


def test_names_of_columns():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = steered(LogisticRegression(), preference="fn <= 20%").fit(table, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.rename(columns={"a": "z"}))
    assert model.predict(table).shape == (N,)


@pytest.fixture(scope="module")
def mixed():
    """Numbers, categories and texts, some missing, steered by a short default committee."""
    random = np.random.default_rng(3)
    words = ["offer", "lunch", "invoice", "prize", "meeting", "garden", "winner", "notes"]
    table = pd.DataFrame(
        {
            "length": X[:, 0],
            "from": np.where(X[:, 1] > 0.5, "shop", random.choice(["friend", "work"], N)),
            "text": [" ".join(random.choice(words, 6)) + f" {i}" for i in range(N)],
        }
    )
    table.loc[::9, "from"] = None
    table.loc[::7, "length"] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_start, "default_committee", lambda *_, **__: PAIR)
        model = SteeredClassifier(preference="fn <= 30%", random_state=0, confidence=0.8)
        return model.fit(table, Y), table


def test_tables_of_every_kind(mixed):
    model, table = mixed
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["length", "from", "text"]
    assert model.confusion(table, Y).accuracy > 0.6
    for line in model.scorer_.committee.encoder.describe().splitlines():
        assert line in model.model_card()


def test_columns_in_another_order_and_new_ones_do_not_matter(mixed):
    model, table = mixed
    answers = model.predict(table)
    np.testing.assert_array_equal(model.predict(table[["text", "length", "from"]]), answers)
    np.testing.assert_array_equal(model.predict(table.assign(more=1)), answers)
    with pytest.raises(ValueError, match="'text'"):
        model.predict(table.drop(columns="text"))


def test_unseen_categories_and_missing_cells_get_an_answer(mixed):
    model, table = mixed
    new = table.head(20).copy()
    new["from"] = "a stranger"
    new.loc[new.index[:5], "text"] = None
    new.loc[new.index[5:9], "length"] = np.nan
    assert set(model.predict(new)) <= {"ham", "spam"}
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)


def test_rows_may_have_any_index(mixed):
    model, table = mixed
    moved = table.set_index(np.arange(N)[::-1] * 5)
    np.testing.assert_array_equal(model.predict(moved), model.predict(table))


# Certificates


@pytest.mark.parametrize("what", ["check", "recertify"])
def test_what_needs_a_certificate(bare, what):
    with pytest.raises(ValueError, match=rf"SteeredClassifier\.{what}\b.*Dialog\.accept"):
        getattr(bare, what)(X, Y)


def test_a_check_on_samples_like_before_and_on_others(guaranteed):
    near = X + 1e-4  # as good as the samples that the model was built from, but not the same
    kept = guaranteed.check(near, Y)
    assert kept
    assert not kept.alarm
    assert kept.confusion == guaranteed.confusion(near, Y)
    broken = guaranteed.check(X - 3, np.full(N, "spam"))
    assert not broken
    assert broken.alarm
    with pytest.raises(ValueError, match=rf"\b{N - 1}\b"):
        guaranteed.check(X, Y[:-1])


@pytest.mark.parametrize("level", [7, -0.1, float("nan"), "low"])
def test_the_level_of_a_check_is_a_share(guaranteed, level):
    with pytest.raises(ValueError, match=r"\blevel\b"):
        guaranteed.check(X, Y, level=level)


def test_a_new_certificate_on_fresh_samples(guaranteed):
    random = np.random.default_rng(77)
    codes = random.integers(0, 2, 300)
    fresh = random.normal(size=(300, 3)) + codes[:, None] * [1.0, 0.6, 0.0]
    labels = np.array(["ham", "spam"])[codes]
    before = guaranteed.certificate_
    model = guaranteed.recertify(fresh, labels)
    assert guaranteed.certificate_ is before
    whole = model.confusion(fresh, labels)
    assert (model.certificate_.confusion.counts <= whole.counts).all()
    assert model.certificate_.guarantees[0].rate <= 0.2
    assert model.certificate_.confidence == before.confidence
    assert model.get_params() == guaranteed.get_params()
    assert model.certificate_.renews == before.issued
    assert any(before.issued in note for note in model.certificate_.remarks)
    np.testing.assert_array_equal(model.scorer_(X), guaranteed.scorer_(X))
    stricter = guaranteed.recertify(fresh, labels, confidence=0.99)
    assert stricter.certificate_.confusion.fn <= model.certificate_.confusion.fn


def test_a_new_certificate_needs_samples_that_fit(guaranteed):
    with pytest.raises(GuaranteeError, match=r"\b8\b.*\bspam\b"):
        guaranteed.recertify(X[:4] + 0.5, ["ham", "spam", "ham", "spam"])
    with pytest.raises(GuaranteeError, match=r"\bspam\b"):
        guaranteed.recertify(X[CODES == 0] + 0.5, Y[CODES == 0])
    with pytest.raises(ValueError, match="'eggs'"):
        guaranteed.recertify(X, np.full(N, "eggs"))


@pytest.mark.parametrize("confidence", [0, 1, 2.5, "high", True])
def test_a_new_certificate_needs_a_confidence(guaranteed, confidence):
    with pytest.raises(ValueError, match=r"\bconfidence\b"):
        guaranteed.recertify(X, Y, confidence=confidence)


def test_a_new_certificate_needs_a_label_for_each_sample(guaranteed):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        guaranteed.recertify(X, Y[:-1])


def test_the_model_card_tells_what_is_guaranteed(guaranteed):
    card = guaranteed.model_card()
    for stated in (
        f"{guaranteed.certificate_.confidence:g}",
        str(guaranteed.certificate_.guarantees[0]),
        "`ham`",
        "`spam`",
        guaranteed.certificate_.issued,
    ):
        assert stated in card
    assert re.search(r"\blogistic\b.*LogisticRegression.*\bbayes\b.*GaussianNB", card)


def test_a_model_taken_from_a_dialog_trains_like_one_made_by_hand():
    dialog = Dialog(TunableLogistic().fit(X[:200], Y[:200]), X[200:], Y[200:])
    model = dialog.prefer("fn <= 20", strategies=["move"]).model
    assert model.get_params()["preference"] == "fn <= 20"
    assert model.get_params()["positive"] == "spam"
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("committee", [GaussianNB(), [("a", GaussianNB()), ("b", GaussianNB())]])
def test_an_accepted_model_trains_again_what_the_dialog_trained(committee):
    dialog = Dialog.from_data(X, Y, committee=committee, guarantee="fn <= 20%", random_state=0)
    dialog.prefer("fn <= 20%", strategies=["move"])
    model = dialog.accept()
    again = clone(model).set_params(random_state=0).fit(X, Y)
    assert tuple(again.scorer_.committee.names) == dialog.members
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_the_default_committee():
    model = SteeredClassifier(preference="fn <= 20%", strategies=["move"], random_state=0).fit(X, Y)
    assert len(model.scorer_.committee.members) == 6
    assert model.certificate_.guarantees[0].rate < 0.2
    assert model.check(X + 0.01, Y)


def test_a_preference_that_is_not_met_is_reported():
    model = SteeredClassifier(
        LogisticRegression(), preference="fp <= 0, fn <= 0", certify=None, random_state=0
    )
    noise = np.random.default_rng(0)
    rows, labels = noise.normal(size=(200, 2)), noise.permutation(np.repeat(["a", "b"], 100))
    with pytest.warns(NotMetWarning, match="fp <= 0, fn <= 0"):
        model.fit(rows, labels)


NASTY = (
    "a|b`\n# head<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[link](http://evil.example) ![i](http://evil.example/i.png)",
    "https://evil.example www.evil.example me@evil.example",
    "``*bold* __strong__ ~~gone~~ &lt;b&gt; &amp;``",
    "\\`code\\` <http://evil.example> <!-- c -->",
)


class Seen(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("nasty", NASTY)
def test_names_are_no_markup_in_a_model_card(nasty):
    random = np.random.default_rng(0)
    y = np.array([nasty, "c"])[random.integers(0, 2, 300)]
    table = pd.DataFrame((y == "c")[:, None] + random.normal(size=(300, 2)), columns=["x", nasty])
    dialog = Dialog.from_data(table, y, committee="logistic", random_state=0)
    dialog.prefer("fp <= 50%", strategies=["move"])
    card = dialog.accept().model_card()
    page = Seen(MarkdownIt("commonmark", {"html": True}).enable("table").render(card))
    allowed = {"h1", "h2", "p", "ul", "li", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.tags <= allowed
    shown = " ".join(nasty.split())
    assert page.text.count(shown) > 4, "the name is shown as it is"
    lines = [line for line in card.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert len(re.findall("(?m)^#", card)) == 6
