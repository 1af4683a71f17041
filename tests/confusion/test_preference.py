import itertools
import pickle
import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import Confusion, Preference
from margrave.confusion import Bound, PreferenceError, quote_label

# By hand: 100 ham, 90 right, 6 predicted spam, 4 rejected; 50 spam, 40 right, 8 missed, 2 rejected.
MAIL = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])
REJECTS = ", rejected <= 100%"


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("fp <= 6", True),
        ("fp <= 5", False),
        ("fp <= 6%", True),
        ("fp <= 5.9%", False),
        ("fn <= 8", True),
        ("fn <= 16%", True),
        ("fn <= 15.99%", False),
        ("fn(ham) <= 6", True),
        ("fp(ham) <= 7", False),
        ("recall >= 0.8", True),
        ("recall(spam) >= 80.1%", False),
        ("recall(ham) >= .9", True),
        ("precision >= 86.9%", True),  # 40 of 46 predicted spam
        ("precision >= 87%", False),
        ("alarms <= 30.7%", True),  # 46 of 150
        ("alarms <= 46", True),
        ("alarms(ham) <= 97", False),
        ("errors <= 14", True),
        ("errors(ham -> spam) <= 5", False),
        ("errors(spam -> ham) <= 16%", True),
        ("correct >= 130", True),
        ("correct(spam) >= 41", False),
        ("accuracy >= 0.86", True),  # 130 of 150
        ("accuracy >= 0.87", False),
        ("FP ≤ 6 and FN ≤ 8", True),
        ("fp <= 6 AND fn <= 8", True),
        ("fp <= 6\nfn <= 7", False),
        ("fp <= 6 % ,\n fn <= 8", True),
        ("fp <= 6; fn <= 7", False),
    ],
)
def test_words_on_a_hand_worked_matrix(text, met):
    assert Preference(text + REJECTS).met(MAIL) is met


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("fp <= 100%", False),  # nothing said of rejecting: none is allowed
        ("fp <= 100%, rejected <= 6", True),
        ("fp <= 100%, rejected <= 4%", True),
        ("fp <= 100%, rejected <= 3.9%", False),
        ("rejected(ham) <= 4", True),  # 2 of spam are rejected: the limit of ham holds for it
        ("rejected(spam) <= 2", False),  # and that of spam for ham, of which 4 are rejected
        ("rejected(ham) <= 4%", True),  # 4 of 100, and 2 of 50
        ("rejected(spam) <= 3%", False),
        ("rejected(spam) <= 4%", True),
        ("rejected(spam) <= 2, rejected(spam) <= 50%", False),
        ("rejected(ham) <= 4, rejected(spam) <= 2", True),
        ("rejected(ham) <= 4%, rejected(spam) <= 4%", True),
        ("rejected(ham) <= 4, rejected(spam) <= 1", False),
    ],
)
def test_rejecting_is_allowed_only_where_it_is_mentioned(text, met):
    assert Preference(text).met(MAIL) is met


def test_shares_are_exact_where_floats_are_not():
    assert 0.29 * 100 < 29  # in floats the bound below would be missed
    assert Preference("fp <= 29%").met(Confusion([[71, 29], [0, 5]]))


def test_shortfall_counts_samples_and_binding_names_the_worst():
    wish = Preference("fp <= 4, recall(spam) >= 90%, rejected <= 6")
    assert wish.shortfall(MAIL) == (6 - 4) + (45 - 40)
    assert str(wish.binding(MAIL)) == "recall(spam) >= 90%"
    loose = Preference("fp <= 7, fn <= 20, rejected <= 6%")
    assert loose.shortfall(MAIL) == 0
    assert str(loose.binding(MAIL)) == "fp <= 7"


def test_binding_names_the_implied_bound_only_when_it_is_missed():
    wish = Preference("fp <= 10")
    assert str(wish.binding(Confusion([[9, 1], [2, 8]]))) == "fp <= 10"
    missed = wish.binding(MAIL)
    assert (missed.implied, missed.word, missed.labels, missed.limit) == (True, "rejected", (), 0)
    missed = Preference("rejected(spam) <= 3").binding(MAIL)
    assert (missed.implied, missed.labels, missed.limit) == (True, ("spam",), 3)
    assert "spam" in str(missed)
    missed = Preference("rejected(spam) <= 100%, rejected(ham) <= 0").binding(MAIL)
    assert (missed.implied, missed.labels, missed.limit) == (False, ("ham",), 0)


def test_limits_on_rejected_samples_of_some_classes_hold_for_all_others_together():
    matrix = Confusion([[10, 0, 0, 4], [0, 20, 0, 3], [0, 0, 10, 3]], classes=["a", "b", "c"])
    assert Preference("rejected(a) <= 6").met(matrix)
    assert Preference("rejected(a) <= 5").shortfall(matrix) == 1
    assert Preference("rejected(a) <= 30%").met(matrix)  # 6 of 36
    assert Preference("rejected(a) <= 4, rejected(b) <= 3").met(matrix)
    assert Preference("rejected(a) <= 4, rejected(b) <= 2").shortfall(matrix) == 2
    assert Preference("rejected(a) >= 1").shortfall(matrix) == 6  # no limit that could be copied
    each = Preference("rejected(a) <= 4, rejected(b) <= 3, rejected(c) <= 25%")
    assert each.met(matrix)
    assert each.allows_rejecting


def test_a_share_of_nothing_is_not_met():
    silent = Confusion([[10, 0], [5, 0]])
    assert not Preference("precision >= 10%").met(silent)
    assert Preference("precision >= 10%").shortfall(silent) == 1


def test_more_than_two_classes():
    matrix = Confusion([[8, 1, 1], [0, 9, 1], [2, 0, 8]], classes=["a", "b", "c"])
    assert Preference("errors(c -> a) <= 2, fp(c) <= 2, recall(b) >= 0.9").met(matrix)
    assert not Preference("fp(c) <= 1").met(matrix)
    assert Preference("fp <= 1").met(Confusion(matrix.counts, "abc", positive="b"))


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([-1, 1], "errors(-1 -> 1) <= 2"),
        ([1.0, 2.0], "recall(2) >= 50%"),
        ([False, True], "fp(True) <= 2"),
        (["not spam", "spam-like"], 'errors("not spam" -> spam-like) <= 2'),
        (["it's", 'so "called"'], "fp('so \"called\"') <= 2"),
        (["", "x"], 'fn("") <= 2'),
    ],
)
def test_labels_of_any_type_and_spelling(classes, text):
    wish = Preference(text)
    assert wish.met(Confusion([[8, 2], [1, 9]], classes=classes))
    assert Preference(str(wish)) == wish


words = st.sampled_from(["fp", "fn", "alarms", "rejected", "correct(a)", "errors(b -> a)", "fp(b)"])
rates = st.sampled_from(["recall(a)", "precision(b)", "accuracy"])
signs = st.sampled_from(["<=", ">="])
counts = st.integers(0, 500).map(str)
shares = st.decimals(0, 100, places=3).map(lambda share: f"{share}%")
bound_texts = st.builds("{} {} {}".format, words, signs, counts | shares) | st.builds(
    "{} {} {}".format, rates, signs, shares
)


@pytest.mark.core
@given(bound_texts)
def test_what_is_printed_reads_back(text):
    try:
        wish = Preference(text)
    except PreferenceError:
        return  # contradicts the implied bound
    assert Preference(str(wish)) == wish
    assert eval(repr(wish), {"Preference": Preference}) == wish  # noqa: S307


matrices = st.lists(st.integers(0, 20), min_size=6, max_size=6).map(
    lambda cells: Confusion(np.reshape(cells, (2, 3)), classes=["a", "b"])
)


@pytest.mark.core
@given(bound_texts, matrices)
def test_met_exactly_when_the_shortfall_is_zero(text, matrix):
    try:
        wish = Preference(text, "rejected <= 100%")
    except PreferenceError:
        return
    assert wish.met(matrix) == (wish.shortfall(matrix) == 0)
    assert wish.met(matrix) == (wish.binding(matrix).slack(matrix) >= 0)


@given(st.lists(bound_texts, min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 3))
def test_check_agrees_with_trying_every_matrix(texts, n_a, n_b):
    try:
        wish = Preference(*texts)
    except PreferenceError:
        return
    rows_a = [row for row in itertools.product(range(n_a + 1), repeat=3) if sum(row) == n_a]
    rows_b = [row for row in itertools.product(range(n_b + 1), repeat=3) if sum(row) == n_b]
    possible = any(wish.met(Confusion([a, b], classes=["a", "b"])) for a in rows_a for b in rows_b)
    sizes = Confusion([[n_a, 0], [0, n_b]], classes=["a", "b"])
    if possible:
        wish.check(sizes)
    else:
        with pytest.raises(PreferenceError, match=rf"\b{n_a}\b.*\b{n_b}\b"):
            wish.check(sizes)


@given(st.lists(bound_texts, min_size=2, max_size=3), matrices)
def test_what_some_matrix_meets_is_never_called_contradictory(texts, matrix):
    single = [Preference(text, "rejected <= 100%") for text in texts if _readable(text)]
    if single and all(wish.met(matrix) for wish in single):
        assert Preference(*single).met(matrix)


def _readable(text):
    try:
        Preference(text, "rejected <= 100%")
    except PreferenceError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "named", "marked"),
    [
        ("", ["fp", "fn", "recall"], "\0"),
        ("fp <= 5; ,", ["fp", "fn", "recall", "','"], ","),
        ("fp <= 1,0000", [], "1,0"),
        ("recall >= 99,5%", [], "99,5"),
        (
            "speed <= 5",
            [
                *("'speed'", "accuracy", "alarms", "correct", "errors", "fn", "fp"),
                *("precision", "recall", "rejected"),
            ],
            "speed",
        ),
        ("fp <= 5, recal(spam) >= 0.9", ["'recal'", "recall"], "recal"),
        ("fp !< 5", ["<=", ">=", "'!<'"], "!<"),
        ("fp = 5", ["<=", ">="], "="),
        ("fp exactly 5", ["<=", ">="], "exactly"),
        ("5 >= fp", ["fp"], ">="),
        ("at most five fp", ["5%", "'five'"], "five"),
        ("fals positives <= 5", ["'fals positives'", "false positives"], "fals positives"),
        ("tp >= 5", ["'tp'", "correct(", "recall"], "tp"),
        ("fp < 0", ["0"], "0"),
        ("at most 5 ham predicted", ["the end"], "\0"),
        ("ham predicted ham <= 2", ["errors", "correct(ham)"], "ham predicted ham"),
        ("recall of not spam >= 90%", ['"not spam"', "'not'"], "not"),
        ("5 fp >=", ["<="], ">="),
        (f"fp <= {'9' * 101}", [], "9" * 101),
        ("fp <= five", ["5%", "'five'"], "five"),
        ("fp <= -1", ["5%", "'-1'"], "-1"),
        ("fp <= 5 fn <= 3", ["'fn'"], "fn"),
        ("fp <= 2.5", [], "2.5"),
        ("fp <= 0.05", ["5%"], "0.05"),
        ("recall >= 90", ["recall", "90%"], "90"),
        ("fp <= 120%", ["fp"], "120%"),
        ("fp() <= 1", ["(spam)", '("not spam")', "(a -> b)", "'()'"], "()"),
        ("recall(not ok) >= 1", ["(spam)", '("not spam")', "(a -> b)", "'(not'"], "(not"),
        ("errors(a) <= 1", ["errors", "->"], "(a)"),
        ("fp(a -> b) <= 1", ["fp("], "(a -> b)"),
        ("errors(a -> a) <= 1", ["errors", "correct(a)"], "(a -> a)"),
        ("fp <= 5, fn <= 1, fp >= 10", ["'fp <= 5'", "'fp >= 10'"], "fp >= 10"),
        (
            "recall(spam) >= 0.9, fn(spam) >= 20%",
            ["'recall(spam) >= 90%'", "'fn(spam) >= 20%'"],
            "fn(spam) >= 20%",
        ),
        ("recall <= 90%, fn <= 5%", ["'recall <= 90%'", "'fn <= 5%'", "rejected"], "fn <= 5%"),
        ("alarms(a) >= 60%, alarms(b) >= 60%", [], "alarms(b) >= 60%"),
        ("fp <= 5, recall(spam) >= 90%, fp >= 6", ["'fp <= 5'", "'fp >= 6'"], "fp >= 6"),
    ],
)
def test_what_cannot_be_read_is_quoted_and_marked(text, named, marked):
    with pytest.raises(PreferenceError) as caught:
        Preference(text)
    head, quote, marks, *_ = str(caught.value).split("\n")
    assert all(name in head for name in named), head
    assert quote == "    " + text
    place = (text + "\0").index(marked)
    assert marks == "    " + " " * place + "^" * len(marked)
    assert caught.value.fields["text"] == text
    assert caught.value.fields["span"] == [place, place + len(marked)]


def test_a_bound_that_is_said_twice_counts_once():
    assert Preference("fp <= 4, rejected <= 6, fp <= 4").shortfall(MAIL) == 2
    assert Preference("fp <= 4") & Preference("fp <= 4") == Preference("fp <= 4")


def test_of_several_texts_the_wrong_one_is_marked():
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 5", "fn <= x")
    assert "    fn <= x\n          ^" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "errors >= 1",
        "errors >= 1%",
        "accuracy <= 90%",
        "accuracy >= 25%, correct <= 1, errors >= 2",
        f"fp <= {100 / 3}%",
        f"recall >= {0.1 + 0.2}",
        f"recall(a) >= {2 / 3}, fp(a) <= {200 / 7}%",
        "fp <= 5,",
        "fp >= 1, precision >= 99.9999999%",
        "alarms >= 60%, alarms(spam) >= 60%",  # spam may be the positive class
    ],
)
def test_what_can_be_met_is_not_refused(text):
    wish = Preference(text)
    assert Preference(str(wish)) == wish


@given(st.decimals(0, 1, allow_nan=False), signs, rates | words)
def test_no_single_share_is_refused_whatever_its_digits(share, sign, word):
    assert Preference(f"{word} {sign} {share * 100:f}%, rejected <= 100%").bounds[0].is_fraction


def test_a_bound_of_a_third_prints():
    assert str(Bound("recall", (), False, Fraction(1, 3), True)).startswith("recall >= 33.33333")


def test_counts_of_any_size_read_back():
    wish = Preference(f"fp <= {10**33 + 1}")
    assert wish.bounds[0].limit == 10**33 + 1
    assert Preference(str(wish)) == wish


def test_check_is_silent_and_exact_for_awkward_shares(capfd):
    third = Preference("fp <= 33.33333333%, fp >= 33.33333333%")
    with pytest.raises(PreferenceError, match=r"'fp <= 33\.33333333%'"):
        third.check(Confusion([[3, 0], [0, 3]]))
    assert capfd.readouterr().out == ""


def test_a_class_that_is_not_there():
    with pytest.raises(PreferenceError, match=r"'eggs'.*ham, spam"):
        Preference("recall(eggs) >= 0.5").met(MAIL)
    three = Confusion(np.eye(3, dtype=int), classes=["a", "b", "c"])
    with pytest.raises(PreferenceError, match=r"'fp <= 1'.*\b3\b.*\bfp\("):
        Preference("fp <= 1").met(three)


def test_check_refuses_more_than_there_are():
    with pytest.raises(PreferenceError, match=r"'correct\(spam\) >= 60'.*100.*ham.*50.*spam"):
        Preference("correct(spam) >= 60, rejected <= 9").check(MAIL)


@pytest.mark.parametrize("matrix", [[[1, 2], [3, 4]], np.eye(2)])
def test_something_that_is_no_confusion_matrix(matrix):
    with pytest.raises(TypeError, match=rf"'fp <= 1'.*Confusion.*{type(matrix).__name__}"):
        Preference("fp <= 1").met(matrix)


def test_bounds_come_as_texts():
    with pytest.raises(TypeError, match=r"Preference.*\['fp <= 5'\]"):
        Preference(["fp <= 5"])


def test_no_bound_at_all():
    with pytest.raises(PreferenceError):
        Preference()


def test_both_at_once_and_values():
    both = Preference("fp <= 5") & Preference("fn <= 2%")
    assert both == Preference("fp <= 5, fn <= 2%")
    assert [bound.limit for bound in both.bounds] == [5, Fraction(1, 50)]
    assert hash(both) == hash(Preference("fp <= 5", "fn <= 2%"))
    assert pickle.loads(pickle.dumps(both)) == both  # noqa: S301


LABELS = st.one_of(st.text(max_size=12), st.text("\"'->,() a", max_size=8))


@given(LABELS, LABELS)
def test_any_label_can_be_written(true, answer):
    answer = answer if answer != true else f"{true}'"
    wish = Preference(
        f"fp({quote_label(true)}) <= 1, errors({quote_label(true)} -> {quote_label(answer)}) <= 2"
    )
    assert [bound.labels for bound in wish.bounds] == [(true,), (true, answer)]
    assert Preference(str(wish)) == wish


# Counts as rates

SIZES = Confusion([[270, 9], [20, 160]], classes=["ham", "spam"])  # 279 and 180, 459 in all


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("fp <= 5", "fp <= 1.792%"),  # 5 of 279 is 1.79211... %
        ("fp >= 5", "fp >= 1.793%"),
        ("fn <= 9", "fn <= 5%"),
        ("fn <= 0", "fn <= 0%"),
        ("recall >= 90%", "recall >= 90%"),
        ("correct(spam) >= 160", "correct(spam) >= 88.89%"),  # 88.888... %
        ("correct >= 400", "correct >= 87.15%"),  # of 459: 87.145... %
        ("errors <= 1", "errors <= 0.2178%"),  # 0.21786... %
        ("errors(ham -> spam) <= 1", "errors(ham -> spam) <= 0.3584%"),  # 0.35842... %
        ("alarms <= 46", "alarms <= 10.02%"),  # 10.0217... %
        ("rejected <= 3, fp <= 1%", "rejected <= 0.6535%, fp <= 1%"),  # 0.65359... %
        ("rejected(spam) <= 90", "rejected(spam) <= 50%, rejected(ham) <= 32.25%"),
        ("fp <= 300", "fp <= 100%"),
    ],
)
def test_a_count_becomes_its_rate_to_four_digits_on_the_strict_side(text, rates):
    assert Preference(text).in_rates(SIZES).limits == Preference(rates)


@given(st.lists(bound_texts, min_size=1, max_size=2), matrices)
def test_rates_are_shares_that_ask_for_no_less(texts, matrix):
    try:
        wish = Preference(*texts)
    except PreferenceError:
        return
    if (matrix.counts.sum(axis=1) == 0).any():
        return
    try:
        wish.check(matrix)
    except PreferenceError:
        return  # more than there are
    try:
        rates = wish.in_rates(matrix)
    except PreferenceError:
        return  # equalities that rounding breaks
    assert all(bound.is_fraction for bound in rates.bounds)
    words = [(bound.word, bound.labels, bound.at_most) for bound in wish.bounds]
    found = [(bound.word, bound.labels, bound.at_most) for bound in rates.bounds]
    if len(found) < len(words):  # two that come to the same rate are one
        assert found * 2 == words
        return
    assert found == words
    for bound, rate in zip(wish.bounds, rates.bounds, strict=True):
        if bound.is_fraction:
            assert rate == bound
            continue
        base = int(matrix.counts[bound.cells(matrix)[1]].sum())
        asked, got = min(bound.limit / base, 1), rate.limit
        assert got <= asked if bound.at_most else got >= asked
        assert abs(got - asked) <= asked / 1000  # to four digits
    if rates.met(matrix):
        assert wish.met(matrix)


@pytest.mark.core
@given(st.integers(0, 200), st.integers(1, 200), st.sampled_from(["fp <=", "correct(a) >="]))
def test_rates_read_back_and_stay_as_they_are(count, size, word):
    if word.endswith(">=") and count > size:
        return
    matrix = Confusion([[size, 0], [0, 7]], classes=["a", "b"])
    rates = Preference(f"{word} {count}").in_rates(matrix)
    assert Preference(str(rates)) == rates
    assert rates.in_rates(matrix) == rates


def test_the_answers_of_the_matrix_do_not_matter():
    wish = Preference("fp <= 5, correct(spam) >= 100, alarms <= 40")
    other = Confusion([[0, 100, 179], [180, 0, 0]], classes=["ham", "spam"])
    assert wish.in_rates(SIZES) == wish.in_rates(other)


def test_a_count_of_a_class_without_samples_has_no_rate():
    with pytest.raises(PreferenceError, match="'fn <= 5'"):
        Preference("fn <= 5").in_rates(Confusion([[10, 2], [0, 0]]))


def test_the_positive_class_of_the_matrix_is_meant():
    matrix = Confusion([[50, 0, 0], [0, 20, 0], [0, 0, 30]], "abc", positive="c")
    assert Preference("fp <= 7").in_rates(matrix) == Preference("fp <= 10%")
    with pytest.raises(PreferenceError, match=r"'fp <= 7'.*\b3\b"):
        Preference("fp <= 7").in_rates(Confusion(matrix.counts, "abc"))


def test_limits_on_many_classes_take_little_memory():
    text = ", ".join(f"recall(c{number}) >= 1%" for number in range(200))
    tracemalloc.start()
    try:
        Preference(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * 2**20  # a dense row of the matrix for each limit would take 240 MB


def is_met(bounds, matrix):
    """By definition: each fraction has a base, and each amount is within its limit."""
    for bound in bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        if bound.is_fraction and not base:
            return False
        limit = bound.limit * base if bound.is_fraction else bound.limit
        if not (amount <= limit if bound.at_most else amount >= limit):
            return False
    return True


ROWS = [row for row in itertools.product(range(4), repeat=3) if sum(row) == 3]
ALL_OF_3 = [Confusion(rows, classes=["a", "b"]) for rows in itertools.product(ROWS, repeat=2)]
WORDS = ["fp", "fn", "recall(a)", "precision", "errors", "rejected", "alarms", "accuracy"]
LIMITS = ["<= 0", "<= 1", "<= 30%", ">= 2", ">= 50%", ">= 90%"]
TEXTS = [
    f"{word} {limit}"
    for word, limit in itertools.product(WORDS, LIMITS)
    if "%" in limit or word not in {"recall(a)", "precision", "accuracy"}
]


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=10, unique=True))
def test_a_conflict_is_minimal(texts):
    """Against all matrices of 3 and 3 samples: no bound of a conflict can be left out."""
    try:
        preference = Preference(", ".join(texts))
    except PreferenceError:  # a conflict for any class sizes
        return
    feasible = any(is_met(preference.all_bounds, matrix) for matrix in ALL_OF_3)
    if feasible:
        preference.check(ALL_OF_3[0])
        return
    with pytest.raises(PreferenceError) as refused:
        preference.check(ALL_OF_3[0])
    named = refused.value.fields["bounds"]
    conflict = [bound for bound in preference.all_bounds if str(bound) in named]
    assert not any(is_met(conflict, matrix) for matrix in ALL_OF_3)
    for bound in conflict:
        fewer = [other for other in conflict if other is not bound]
        assert any(is_met(fewer, matrix) for matrix in ALL_OF_3)


@pytest.mark.parametrize("at", [0, 100, 197])
def test_a_conflict_among_many_bounds_takes_few_programs(monkeypatch, at):
    import scipy.optimize

    solve, programs = scipy.optimize.milp, []

    def count(*args, **options):
        programs.append(args)
        return solve(*args, **options)

    monkeypatch.setattr(scipy.optimize, "milp", count)
    texts = [f"fp(a) <= {limit}" for limit in range(100, 297)]
    texts[at:at] = ["errors <= 5"]
    with pytest.raises(PreferenceError) as refused:
        Preference(", ".join([*texts, "errors >= 6"]))
    assert refused.value.fields["bounds"] == ["errors <= 5", "errors >= 6"]
    assert len(programs) <= 4 * 8 + 2  # 4 log₂ n for a conflict of two, and the first ones


def seconds_of_conflict(word):
    others = ", ".join(f"recall(c{number}) >= 1%" for number in range(20))
    start = time.thread_time()
    with pytest.raises(PreferenceError) as caught:
        Preference(f"{word} <= 5, {word} >= 6, {others}")
    assert caught.value.fields["bounds"] == [f"{word} <= 5", f"{word} >= 6"]
    return time.thread_time() - start


def test_a_conflict_on_the_positive_class_is_not_explained_for_every_class():
    seconds_of_conflict("fp(a)")  # imports the solver
    # An explanation for each of the 21 classes would take 21 times as long.
    assert seconds_of_conflict("fp") < 8 * seconds_of_conflict("fp(a)")


def test_a_preference_has_a_bounded_number_of_bounds():
    bounds = [f"recall(c{i}) >= 1%" for i in range(201)]
    assert len(Preference(*bounds[:200]).bounds) == 200
    for many in (bounds, [", ".join(bounds)], [Preference(*bounds[:150]), *bounds[150:]]):
        with pytest.raises(PreferenceError) as refused:
            Preference(*many)
        assert refused.value.code == "too_many"
        assert refused.value.fields["allowed"] == 200
    assert len(Preference(*bounds[:10] * 100).bounds) == 10


def test_a_class_that_is_written_in_another_way_is_the_same_class():
    """A new limit replaces an old one on it."""
    matrix = Confusion.of([1.0, 2.0], [1.0, 2.0])
    old = Preference("fp(2) <= 1, fn <= 3", classes=matrix.classes, positive=matrix.positive)
    assert str(matrix.edit(1.0, 2.0, 0).keeping(old, matrix)).count("fp") == 1


SPELLINGS = [
    ([False, True], 1, ["True", "true", "TRUE"]),
    ([0, 1], 1, ["1", "1.0", "1e0"]),
    ([-1, 1], 0, ["-1", "-1.0"]),
    ([0.5, 1.0], 1, ["1.0", "1"]),
    (["b", "True"], 1, ["True"]),
    (["1", "1.0"], 0, ["1"]),
    (["1", "1.0"], 1, ["1.0"]),
]


@pytest.mark.parametrize(
    ("classes", "at", "text"),
    [(classes, at, text) for classes, at, texts in SPELLINGS for text in texts],
)
def test_a_class_is_found_as_the_command_line_finds_it(classes, at, text):
    matrix = Confusion([[90, 10], [5, 45]], classes)
    other = quote_label(classes[1 - at])
    for bound in (
        f"recall('{text}') >= 0%",
        f"fn('{text}') <= 9",
        f"errors('{text}' -> {other}) <= 9",
    ):
        (found,) = Preference(bound).bounds
        assert found.subject(matrix)[1][0] == str(classes[at])
        assert found.cells(matrix)[1][at].any()
        assert not found.cells(matrix)[1][1 - at].any()
    (found,) = Preference(f"errors({other} -> '{text}') <= 9").bounds
    assert found.slack(matrix) == 9 - matrix[classes[1 - at], classes[at]]


@pytest.mark.parametrize(
    ("classes", "text", "near"),
    [
        ([False, True], "tru", ["True"]),
        (["Spam", "ham"], "spam", ["Spam"]),
        ([0, 1], "True", []),
        (["a", "true"], "True", ["true"]),
    ],
)
def test_a_near_miss_of_a_class_is_suggested(classes, text, near):
    matrix = Confusion([[9, 1], [1, 9]], classes)
    with pytest.raises(PreferenceError) as refused:
        Preference(f"recall({text}) >= 90%").check(matrix)
    assert (refused.value.code, refused.value.fields["near"]) == ("unknown_class", near)
