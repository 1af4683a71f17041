"""Goals: what is minimised among the decisions that meet the limits."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import Confusion, Preference
from margrave.confusion import Goal, PreferenceError

MAIL = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])
CLASSES = {2: ["ham", "spam"], 3: ["then", "not spam", "c"], 4: [0, 1, 2, 3]}
MATRICES = {
    k: Confusion(np.full((k, k), 100), classes, positive=classes[1])
    for k, classes in CLASSES.items()
}


def quoted(label):
    return '"' + str(label).replace('"', '""') + '"'


def costs(text, matrix):
    """The costs of the goal of a preference."""
    return Preference(text).goal(matrix).costs(matrix)


# The errors that a limit limits, cell by cell, by the definition of each word


def is_counted(word, true, predicted, labels):
    """Whether a word counts a cell; `predicted` is None for a rejected sample."""
    match word:
        case "accuracy" | "correct" | "recall":
            return true == predicted and true in (labels or [true])
        case "errors":
            return (true, predicted) == labels if labels else predicted not in (None, true)
        case "fn":
            return true == labels[0] and predicted not in (None, true)
        case "fp":
            return true != labels[0] and predicted == labels[0]
        case "alarms":
            return predicted == labels[0]
        case "precision":
            return true == predicted == labels[0]
        case "rejected":
            return predicted is None and true in (labels or [true])


def is_in_base(word, true, predicted, labels):
    """Whether a cell is among those that a word is a fraction of."""
    match word:
        case "fp":
            return true != labels[0]
        case "precision":
            return predicted == labels[0]
        case "alarms":
            return True
        case _:
            return not labels or true == labels[0]


def is_limited(bound, true, predicted):
    word, labels, at_most, limit = bound
    if limit == ("100%" if at_most else "0%"):  # every matrix meets it
        return False
    counted = is_counted(word, true, predicted, labels)
    return counted if at_most else is_in_base(word, true, predicted, labels) and not counted


def unlimited_cells(bounds, k):
    """A mask of the errors that no bound limits; of all errors if there are none."""
    errors = [(true, predicted) for true in range(k) for predicted in range(k) if true != predicted]
    free = [cell for cell in errors if not any(is_limited(bound, *cell) for bound in bounds)]
    mask = np.zeros((k, k + 1))
    for cell in free or errors:
        mask[cell] = 1
    return mask


def write(bound, classes):
    word, labels, at_most, limit = bound
    names = " -> ".join(quoted(classes[label]) for label in labels)
    return f"{word}{f'({names})' if labels else ''} {'<=' if at_most else '>='} {limit}"


RATES = ["accuracy", "precision", "recall"]
SINGLE = ["alarms", "fn", "fp", "precision", "recall"]  # these always refer to one class


@st.composite
def bounds_of(draw, k, limits=("0%", "3%", "50%", "97%", "100%", "1", "7")):
    """A word, the positions of its classes, whether it is an upper limit, and the limit."""
    word = draw(st.sampled_from([*SINGLE, "accuracy", "correct", "errors", "rejected"]))
    one = st.tuples(st.integers(0, k - 1))
    pair = st.permutations(range(k)).map(lambda order: tuple(order[:2]))
    labels = {"errors": st.just(()) | pair, "accuracy": st.just(())}
    chosen = labels.get(word, one if word in SINGLE else one | st.just(()))
    limit = st.sampled_from([text for text in limits if word not in RATES or "%" in text])
    return word, draw(chosen), draw(st.booleans()), draw(limit)


@st.composite
def requests(draw, max_size=3):
    """Bounds that can hold together, the number of classes, and the preference."""
    k = draw(st.sampled_from([2, 3, 4]))
    bounds = draw(st.lists(bounds_of(k), min_size=1, max_size=max_size))
    texts = [write(bound, CLASSES[k]) for bound in bounds]
    try:
        return bounds, k, Preference(*texts)
    except PreferenceError as error:
        if error.code != "conflict":
            raise
        return bounds[:0], k, Preference("rejected <= 0")


@pytest.mark.core
@given(requests())
def test_the_goal_is_the_errors_that_no_limit_limits(request_):
    bounds, k, preference = request_
    matrix = MATRICES[k]
    expected = unlimited_cells(bounds, k)
    np.testing.assert_array_equal(preference.goal(matrix).costs(matrix), expected)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("at_most", [True, False])
@pytest.mark.parametrize("limit", ["0%", "20%", "100%", "5"])
@pytest.mark.parametrize("word", [*SINGLE, "accuracy", "correct", "errors", "rejected"])
def test_the_goal_of_every_single_word(word, limit, at_most, k):
    if word in RATES and limit == "5":
        limit = "99.9%"
    matrix, classes = MATRICES[k], CLASSES[k]
    choices = [(c,) for c in range(k)]
    if word == "errors":
        choices = [(a, b) for a in range(k) for b in range(k) if a != b]
    for labels in [*(() if word == "accuracy" else choices), *([] if word in SINGLE else [()])]:
        bound = word, labels, at_most, limit
        texts = [write(bound, classes)]
        if word == "rejected" and not at_most:
            texts.append("rejected <= 100%")
        goal = Preference(*texts).goal(matrix)
        np.testing.assert_array_equal(goal.costs(matrix), unlimited_cells([bound], k))


@pytest.mark.parametrize("word", SINGLE)
def test_a_word_without_a_class_refers_to_the_positive_class(word):
    for k, matrix in MATRICES.items():
        by_name = costs(f"{word}({quoted(CLASSES[k][1])}) <= 40%", matrix)
        np.testing.assert_array_equal(costs(f"{word} <= 40%", matrix), by_name)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("fp <= 2%", "fewest fn"),
        ("alarms <= 2%", "fewest fn"),
        ("precision >= 90%", "fewest fn"),
        ("recall(ham) >= 90%", "fewest fn"),
        ("fn <= 2%", "fewest fp"),
        ("recall >= 90%", "fewest fp"),
        ("precision(ham) >= 90%", "fewest fp"),
        ("fp <= 2%, fn <= 2%", "fewest errors"),
        ("accuracy >= 90%", "fewest errors"),
        ("rejected <= 10%", "fewest errors"),
        ("rejected <= 10%, fp <= 2%", "fewest fn"),
        ("fp <= 100%", "fewest errors"),
        ("fp <= 2%, fn <= 100%", "fewest fn"),
        ("fp <= 2%, recall >= 0%", "fewest fn"),
    ],
)
def test_goals_of_two_classes(text, goal):
    assert str(Preference(text).goal(MAIL)) == goal


@pytest.mark.parametrize("text", ["correct(spam) >= 0", "correct >= 0", "fp >= 0", "errors >= 0"])
def test_a_count_of_at_least_0_limits_nothing(text):
    np.testing.assert_array_equal(costs(text, MAIL), costs("fp <= 100%", MAIL))
    np.testing.assert_array_equal(costs(f"{text}, fp <= 2%", MAIL), costs("fp <= 2%", MAIL))


@given(requests(), st.randoms(use_true_random=False))
def test_the_order_of_limits_does_not_matter(request_, random):
    _, k, preference = request_
    bounds = list(preference.bounds)
    random.shuffle(bounds)
    assert Preference.of(bounds).goal(MATRICES[k]) == preference.goal(MATRICES[k])


@given(requests())
def test_to_state_the_goal_that_is_meant_changes_nothing(request_):
    _, k, preference = request_
    matrix = MATRICES[k]
    stated = Preference(str(preference), f"then {preference.goal(matrix)}")
    assert stated.goal(matrix) == preference.goal(matrix)
    np.testing.assert_array_equal(
        stated.goal(matrix).costs(matrix), preference.goal(matrix).costs(matrix)
    )


# What people write


FP, FN = (0, 1), (1, 0)  # cells of two classes
BOTH = {FP: 1, FN: 1}


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("fewest errors", BOTH),
        ("the fewest errors.", BOTH),
        ("least errors", BOTH),
        ("minimise errors", BOTH),
        ("Minimize mistakes", BOTH),
        ("fewest fn", {FN: 1}),
        ("fewest false negatives", {FN: 1}),
        ("fewest missed", {FN: 1}),
        ("fewest false alarms", {FP: 1}),
        ("fewest fp(ham)", {FN: 1}),
        ("fewest errors(ham -> spam)", {FP: 1}),
        ("fewest ham predicted spam", {FP: 1}),
        ("fewest ham predicted as spam + spam rejected", {FP: 1, (1, 2): 1}),
        ("fewest errors + rejected", {**BOTH, (0, 2): 1, (1, 2): 1}),
        ("fewest rejected of spam", {(1, 2): 1}),
        ("fewest alarms", {(0, 1): 1, (1, 1): 1}),
        ("fewest errors outside fp", {FN: 1}),
        ("fewest errors outside spam predicted ham", {FP: 1}),
        ("lowest cost of fp + 20 fn", {FP: 1, FN: 20}),
        ("the lowest cost of 20 fn and fp", {FP: 1, FN: 20}),
        ("minimum cost of 0.25 fp + 1,000 fn", {FP: 0.25, FN: 1000}),
        ("lowest cost of fp + 2.5 rejected", {FP: 1, (0, 2): 2.5, (1, 2): 2.5}),
        ("least cost of errors + 4 fn", {FP: 1, FN: 5}),
    ],
)  # fmt: skip
def test_goals_that_people_write(goal, expected):
    preference = Preference(f"fp <= 5, then {goal}")
    assert preference.limits == Preference("fp <= 5")
    found = preference.goal(MAIL).costs(MAIL)
    assert {cell: found[cell] for cell in zip(*np.nonzero(found), strict=True)} == expected
    assert Preference(str(preference)) == preference
    assert eval(repr(preference), {"Preference": Preference}) == preference  # noqa: S307


@pytest.mark.parametrize("before", ["fp <= 5", "fp <= 5%, recall(spam) >= 90%", "no fp"])
@pytest.mark.parametrize(
    "link", [", then ", " then ", "\nthen ", "; then ", " and then ", ", and then ", ",\n THEN "]
)
def test_a_goal_follows_the_limits(before, link):
    for goal in ("fewest errors", "fewest other errors", "lowest cost of fp + 20 fn"):
        preference = Preference(before + link + goal)
        assert preference == Preference(before, f"then {goal}")
        assert preference.limits == Preference(before)
        assert Preference(f"{preference}.") == preference


@pytest.mark.parametrize("others", ["others", "other errors", "Other Errors"])
def test_other_errors_are_those_that_the_request_does_not_limit(others):
    for text in ("fp <= 5", "fn <= 5", "fp <= 5, fn <= 5", "rejected <= 10%"):
        preference = Preference(f"{text}, then fewest {others}")
        assert preference.goal(MAIL) == Preference(text).goal(MAIL)
        assert Preference(str(preference)) == preference


LABELS = st.one_of(
    st.text(max_size=8), st.text("\"'->,() a", max_size=8), st.sampled_from(["then", "and", "fp"])
)
AMOUNTS = st.none() | st.decimals("0.001", 1000, places=3).map(Fraction)
QUANTITIES = ["fp", "fn", "errors", "rejected", "alarms"]


@pytest.mark.core
@given(
    st.data(),
    st.lists(LABELS, min_size=2, max_size=4, unique=True),
    st.sampled_from([", then ", " then ", "\nthen ", " and then "]),
    st.booleans(),
)
def test_any_goal_is_read_back_and_costs_what_it_says(data, labels, link, outside):
    """Each term counts the cells of its word, and a cell costs the sum over the terms."""
    k = len(labels)
    matrix = Confusion(np.full((k, k), 9), classes=labels, positive=labels[0])
    pairs = [*((a, b) for a in range(k) for b in range(k) if a != b)]
    terms = []
    for word in data.draw(st.lists(st.sampled_from(QUANTITIES), min_size=1, max_size=4)):
        choices = pairs if word == "errors" else [(c,) for c in range(k)]
        named = data.draw(st.sampled_from([*choices, ()]))
        terms.append((word, named, None if outside else data.draw(AMOUNTS)))
    expected = np.zeros((k, k + 1))
    for word, named, amount in terms:
        meant = named if named or word not in SINGLE else (0,)
        for true in range(k):
            for column in range(k + 1):
                predicted = None if column == k else column
                if is_counted(word, true, predicted, meant):
                    expected[true, column] += 1 if amount is None else float(amount)
    if outside:
        errors = ~np.eye(k, k + 1, dtype=bool) & (np.arange(k + 1) < k)
        expected = (errors & (expected == 0)).astype(float)
    written = " + ".join(
        ("" if amount is None else f"{float(amount)!r} ")
        + word
        + (f"({' -> '.join(quoted(labels[c]) for c in named)})" if named else "")
        for word, named, amount in terms
    )
    lead = "fewest errors outside" if outside else "lowest cost of"
    preference = Preference(f"fp({quoted(labels[1])}) <= 5{link}{lead} {written}")
    np.testing.assert_allclose(preference.goal(matrix).costs(matrix), expected, rtol=1e-12)
    again = Preference(str(preference))
    assert again == preference
    assert hash(again) == hash(preference)


@pytest.mark.parametrize("label", ["then", "Then", "and then"])
def test_a_class_that_is_called_then_is_written_in_quotes(label):
    matrix = Confusion([[9, 1], [2, 8]], classes=["other", label])
    preference = Preference(f'fp("{label}") <= 2, then fewest fn("{label}")')
    assert preference.bounds[0].labels == (label,)
    np.testing.assert_array_equal(preference.goal(matrix).costs(matrix), [[0, 0, 0], [1, 0, 0]])
    bound = Preference(f'at most 5 other predicted "{label}"').bounds[0]
    assert bound.labels == ("other", label)


# What is refused


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("fp <= 5, then lowest cost", None),  # of what?
        ("fp <= 5, then lowest cost of", None),
        ("fp <= 5, then", None),
        ("fp <= 5, then fewest", None),
        ("fp <= 5, then errors", "errors"),
        ("fp <= 5, then fn <= 3", "fn"),
        ("fp <= 5, then fewest errors, fn <= 3", ","),  # limits come first
        ("fp <= 5 then fewest errors and fn <= 3", "<="),
        ("fp <= 5, then fewest errors then fewest fn", "then"),
        ("fp <= 5, then lowest cost of fpr + 2 fn", "fpr"),
        ("fp <= 5, then fewest recall", "recall"),
        ("fp <= 5, then fewest accuracy", "accuracy"),
        ("fp <= 5, then lowest cost of 2 precision(spam)", "precision(spam)"),
        ("fp <= 5, then fewest specificity", "specificity"),
        ("fp <= 5, then fewest error rate", "error rate"),
        ("fp <= 5, then fewest correct", "correct"),
        ("fp <= 5, then lowest cost of fp + 0 fn", "0"),
        ("fp <= 5, then lowest cost of fp + 0.0 fn", "0.0"),
        ("fp <= 5, then lowest cost of fp + 20% fn", "20%"),
        ("fp <= 5, then lowest cost of fp + -2 fn", None),
        ("fp <= 5, then lowest cost of fp + 20", None),
        ("fp <= 5, then fewest errors(a -> a)", "(a -> a)"),
        ("then fewest errors, fp <= 5", ","),
    ],
)
def test_goals_that_are_refused_are_marked(text, marked):
    with pytest.raises(PreferenceError) as caught:
        Preference(text)
    error = caught.value
    assert error.code == "syntax"
    start, end = error.fields["span"]
    assert 0 <= start < end <= len(text) + 1
    if marked is not None:
        assert text[start:end] == marked
    json.dumps(error.to_dict(), allow_nan=False)


def test_an_unknown_word_in_a_goal_has_a_suggestion():
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 5, then fewest fnn")
    assert caught.value.code == "unknown_word"
    assert "fn" in caught.value.fields["near"]


def test_a_goal_needs_a_limit():
    with pytest.raises(PreferenceError) as caught:
        Preference("then fewest errors")
    assert caught.value.code == "no_preference"


def test_two_goals_are_refused_and_one_that_is_stated_twice_counts_once():
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 5, then fewest errors", "then fewest fn")
    assert caught.value.code == "two_goals"
    assert caught.value.fields["goals"] == ["fewest errors", "fewest fn"]
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 5, then fewest errors") & Preference("fn <= 5, then fewest fn")
    assert caught.value.code == "two_goals"
    once = Preference("fp <= 5, then fewest fn")
    assert Preference(once, "then fewest fn") == once
    assert once & Preference("rejected <= 0") == Preference(
        "fp <= 5, rejected <= 0, then fewest fn"
    )


@pytest.mark.parametrize("goal", ["fn(spamm)", "errors(ham -> spamm)", "errors outside fp(spamm)"])
def test_an_unknown_class_in_a_goal_is_refused_with_the_data(goal):
    with pytest.raises(PreferenceError) as caught:
        Preference(f"fp <= 5, then fewest {goal}").check(MAIL)
    assert caught.value.code == "unknown_class"
    assert (caught.value.fields["label"], caught.value.fields["near"]) == ("spamm", ["spam"])


def test_a_goal_on_the_positive_class_needs_one():
    three = Confusion(9 * np.eye(3, dtype=int), classes=["a", "b", "c"])
    with pytest.raises(PreferenceError) as caught:
        Preference("fp(a) <= 5, then fewest fn").check(three)
    assert caught.value.code == "needs_class"
    Preference("fp(a) <= 5, then fewest fn(a)").check(three)


# A preference with a goal is a value


def test_a_goal_does_not_change_what_is_met():
    plain, stated = Preference("fp <= 6"), Preference("fp <= 6, then fewest rejected")
    for fp in (5, 6, 7):
        matrix = Confusion([[90 - fp, fp], [8, 40]], classes=["ham", "spam"])
        assert stated.met(matrix) == plain.met(matrix)
        assert stated.shortfall(matrix) == plain.shortfall(matrix)
    assert stated.limits == plain
    assert plain.limits == plain
    assert str(stated.limits) == "fp <= 6"


def test_preferences_are_equal_if_their_limits_and_goals_are():
    texts = [
        "fp <= 5",
        "fp <= 5, then fewest errors",
        "fp <= 5, then fewest fn",
        "fp <= 5, then fewest other errors",
        "fp <= 5, then lowest cost of fp + 2 fn",
        "fp <= 5, then lowest cost of fp + 3 fn",
        "fp <= 5, then fewest errors outside fp",
        "fp <= 6, then fewest errors",
    ]
    preferences = [Preference(text) for text in texts]
    assert len(set(preferences)) == len(texts)
    assert preferences == [Preference(str(one)) for one in preferences]
    assert set(preferences) == {Preference(text.replace(", then", "\nthen")) for text in texts}
    for one in preferences:
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        goal = one.goal(MAIL)
        assert pickle.loads(pickle.dumps(goal)) == goal  # noqa: S301
        assert hash(pickle.loads(pickle.dumps(one))) == hash(one)  # noqa: S301


def test_a_cost_of_1_is_a_count():
    assert Preference("fp <= 5, then lowest cost of fn + fp") == Preference(
        "fp <= 5, then fewest fn + fp"
    )
    assert Preference("fp <= 5, then lowest cost of 1 fn") == Preference("fp <= 5, then fewest fn")


def test_the_dictionary_has_the_goal():
    plain, stated = Preference("fp <= 5"), Preference("fp <= 5, then lowest cost of fp + 20 fn")
    assert plain.to_dict()["then"] is None
    described = json.loads(json.dumps(stated.to_dict(), allow_nan=False))
    assert described["bounds"] == plain.to_dict()["bounds"]
    assert Preference(described["text"]) == stated
    assert Preference("fp <= 5", f"then {described['then']}") == stated


def test_rates_keep_the_goal():
    stated = Preference("fp <= 5, then lowest cost of fp + 20 fn")
    in_rates = stated.in_rates(MAIL)
    assert all(bound.is_fraction for bound in in_rates.bounds)
    assert in_rates.then == stated.then
    assert Preference("fp <= 5").in_rates(MAIL).then is None


# A further request


@pytest.mark.parametrize(
    ("before", "wants", "goal"),
    [
        ("fp <= 2%", "fn <= 25%", "fewest fn"),  # kept
        ("fp <= 2%", "fp <= 3%", "fewest fn"),
        ("fp <= 2%, fn <= 9%", "fn <= 25%", "fewest errors"),
        ("fp <= 2%, then fewest errors", "fp <= 3%", "fewest errors"),
        ("fp <= 2%, then fewest errors", "fn <= 3%", "fewest errors"),
        ("fp <= 2%, then lowest cost of fp + 2 fn", "fn <= 3%", "lowest cost of fp + 2 fn"),
        ("fp <= 2%", "fn <= 25%, then fewest errors", "fewest errors"),  # replaced
        ("fp <= 2%", "fn <= 25%, then fewest fp", "fewest fp"),
        ("fp <= 2%, then fewest errors", "fn <= 3%, then fewest fn + fp", "fewest fn + fp"),
        ("fp <= 2%", "fn <= 25%, then fewest other errors", "fewest fp"),  # of the new request
        ("fp <= 2%, then fewest errors", "fp <= 3%, then fewest other errors", "fewest fn"),
        ("rejected <= 10%", "fp <= 2%", "fewest fn"),  # no error was limited
        ("rejected <= 10%", "fn <= 2%", "fewest fp"),
        ("fp <= 100%", "fn <= 2%", "fewest fp"),
        ("rejected <= 10%, then fewest errors", "fn <= 2%", "fewest errors"),
        ("fp <= 2%", "rejected <= 10%", "fewest fn"),
        ("fp <= 2%", "rejected <= 10%, then fewest other errors", "fewest errors"),
    ],
)
def test_the_goal_of_a_further_request(before, wants, goal):
    joined = Preference(wants).keeping(Preference(before), MAIL)
    assert str(joined.goal(MAIL)) == goal
    assert Preference(str(joined)) == joined


@given(requests(1), st.data())
def test_a_further_limit_keeps_the_goal(request_, data):
    bounds, k, before = request_
    matrix = MATRICES[k]
    limits_errors = (unlimited_cells(bounds, k).sum() < k * (k - 1)) or any(
        is_limited(bound, a, b) for bound in bounds for a in range(k) for b in range(k) if a != b
    )
    further = write(data.draw(bounds_of(k)), CLASSES[k])
    try:
        joined = Preference(further).keeping(before, matrix)
    except PreferenceError as error:
        if error.code != "conflict":
            raise
        return
    expected = before if limits_errors else joined.limits
    np.testing.assert_array_equal(
        joined.goal(matrix).costs(matrix), expected.goal(matrix).costs(matrix)
    )
    assert joined.keeping(joined, matrix).goal(matrix) == joined.goal(matrix)
    assert Preference(str(joined)) == joined


def test_without_an_earlier_preference_nothing_is_kept():
    for text in ("fp <= 5", "fp <= 5, then fewest errors"):
        assert Preference(text).keeping(None, MAIL) == Preference(text)
    others = Preference("fp <= 5, then fewest other errors").keeping(None, MAIL)
    assert others.goal(MAIL) == Preference("fp <= 5").goal(MAIL)


def test_goals_of_equal_quantities_are_equal():
    goals = [Preference("fp <= 5, then fewest fn").then, Preference("fp <= 1").goal(MAIL)]
    assert goals[0] == goals[1]
    assert isinstance(goals[0], Goal)
    assert len(set(goals)) == 1
