"""The texts that a preference is parsed from: synonyms, sentences, and errors with codes."""

import contextlib
import json
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margrave import Confusion, Preference
from margrave.confusion import PreferenceError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("fp < 30", "fp <= 29"),  # of counts, < is exact
        ("fp > 3", "fp >= 4"),
        ("fewer than 10 fp", "fp <= 9"),
        ("more than 10 alarms", "alarms >= 11"),
        ("recall > 90%", "recall >= 90%"),  # of fractions, < is <= and > is >=
        ("fp =< 5", "fp <= 5"),
        ("FPR <= 2%", "fp <= 2%"),
        ("fpr <= 0.02", "fp <= 2%"),
        ("fp rate <= 2 %", "fp <= 2%"),
        ("False-positive rate below 5 per cent", "fp <= 5%"),
        ("fnr at most 5 percent", "fn <= 5%"),
        ("tpr >= 90%", "recall >= 90%"),
        ("sensitivity above 90%", "recall >= 90%"),
        ("recall of at least 90%", "recall >= 90%"),
        ("tnr >= 95 %", "fp <= 5%"),
        ("specificity at least 0.999", "fp <= 0.1%"),
        ("specificity(spam) <= 95%", "fp(spam) >= 5%"),
        ("error rate <= 5%", "errors <= 5%"),
        ("at most 30 false positives", "fp <= 30"),
        ("no more than 5% false negatives", "fn <= 5%"),
        ("at least 95 % precision", "precision >= 95%"),
        ("misses up to 5", "fn <= 5"),
        ("false alarms <= 5", "fp <= 5"),
        ("recall at least 90 %", "recall >= 90%"),
        ("recall should be at least 90%", "recall >= 90%"),
        ("recall of spam at least 90%", "recall(spam) >= 90%"),
        ("spam recall >= 90%", "recall(spam) >= 90%"),
        ("recall of 1 at least 90%", "recall(1) >= 90%"),
        ('precision for "not spam" >= 95%', 'precision("not spam") >= 95%'),
        ("at most 2 % of ham predicted as spam", "errors(ham -> spam) <= 2%"),
        ("at most 2% of ham is predicted as spam", "errors(ham -> spam) <= 2%"),
        ("at most 5 ham predicted spam", "errors(ham -> spam) <= 5"),
        ("at most 5 0 predicted 1", "errors(0 -> 1) <= 5"),
        ("at most 10 % rejected", "rejected <= 10%"),
        ("at most 10% of the samples rejected", "rejected <= 10%"),
        ("at most 5 spam rejected", "rejected(spam) <= 5"),
        ("no false positives", "fp <= 0"),
        ("no ham predicted as spam", "errors(ham -> spam) <= 0"),
        ("no predicted yes <= 5", "errors(no -> yes) <= 5"),  # "no" is a class here
        ("30 fp at most", "fp <= 30"),
        ("max 30 fp", "fp <= 30"),
        ("fp max 30", "fp <= 30"),
        ("min recall 90%", "recall >= 90%"),
        ("fp <= 30 samples", "fp <= 30"),
        ("fp <= 1,000", "fp <= 1000"),
        ("fp <= 1,000,fn <= 12,345", "fp <= 1000, fn <= 12345"),
        ("at most 5 fp\nat most 3 fn", "fp <= 5, fn <= 3"),
        ("At most 30 false positives, and recall of spam >= 90%.", "fp <= 30, recall(spam) >= 90%"),
    ],
)
def test_what_people_type(text, canonical):
    wish = Preference(text)
    assert str(wish) == canonical
    assert Preference(canonical) == wish


def failing(*texts, **known):
    with pytest.raises(PreferenceError) as caught:
        Preference(*texts, **known)
    return caught.value


def test_errors_of_the_text_have_codes():
    error = failing("fp <= 5, recal(spam) >= 0.9")
    assert error.code == "unknown_word"
    assert error.fields["word"] == "recal"
    assert "recall" in error.fields["near"]
    assert failing("fp <= 5 fn <= 3").code == "syntax"
    error = failing("fp <= 2.5")
    assert (error.code, error.fields["limit"]) == ("not_a_count", "2.5")
    error = failing("recall >= 90")
    assert (error.code, error.fields["limit"]) == ("not_a_fraction", "90")
    error = failing("fp <= 5, fn <= 1, fp >= 6")
    assert (error.code, error.fields["bounds"]) == ("conflict", ["fp <= 5", "fp >= 6"])
    assert error.fields["span"] == [18, 25]
    assert failing().code == "no_preference"
    json.dumps(error.to_dict(), allow_nan=False)


def test_errors_of_the_data_have_codes():
    mail = Confusion([[90, 10], [8, 42]], classes=["ham", "spam"])
    three = Confusion(np.eye(3, dtype=int), classes=[0, 1, 2])
    with pytest.raises(PreferenceError) as caught:
        Preference("recall(spamm) >= 90%").check(mail)
    assert caught.value.code == "unknown_class"
    assert caught.value.fields == {
        "bound": "recall(spamm) >= 90%",
        "label": "spamm",
        "classes": ["ham", "spam"],
        "near": ["spam"],
    }
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 1").check(three)
    assert caught.value.code == "needs_class"
    assert caught.value.fields == {"bound": "fp <= 1", "classes": [0, 1, 2]}
    with pytest.raises(PreferenceError) as caught:
        Preference("fp <= 101").check_counts(mail)
    assert caught.value.code == "too_large"
    assert caught.value.fields == {"bound": "fp <= 101", "limit": 101, "n": 100}
    with pytest.raises(PreferenceError) as caught:
        Preference("correct(spam) >= 60").check(mail)
    assert caught.value.code == "conflict"
    assert caught.value.fields["sizes"] == {"ham": 100, "spam": 50}
    with pytest.raises(PreferenceError) as caught:
        Preference("fn <= 5").in_rates(Confusion([[10, 2], [0, 0]]))
    assert caught.value.code == "no_samples"


@pytest.mark.parametrize(
    ("classes", "positive"),
    [
        (None, None),
        (["ham", "spam"], None),
        (["a b", "c", 'd"'], None),
        ([0, 1, 2], 0),
        ([1], None),
    ],
)
def test_examples_in_errors_fit_the_classes(classes, positive):
    error = failing("five spams", classes=classes, positive=positive)
    examples = error.fields["examples"]
    assert len(set(examples)) == 3
    assert all(example in str(error) for example in examples)
    known = classes if classes and len(classes) > 1 else [0, 1]
    sizes = Confusion(100 * np.eye(len(known), dtype=int), known, positive=positive)
    for text in examples:
        Preference(text).check_counts(sizes)


def test_examples_name_known_classes():
    examples = failing("five spams", classes=["ham", "spam"]).fields["examples"]
    assert "errors(ham -> spam) <= 2%" in examples
    assert not any("ham" in example for example in failing("five spams").fields["examples"])


TOKENS = [
    *("fp", "FN", "recall", "precision", "false", "positives", "rate", "specificity", "errors"),
    *("rejected", "at", "most", "least", "no", "more", "than", "of", "for", "the", "samples", "is"),
    *("max", "min", "zero", "predicted", "as", "ham", "spam", '"not spam"', "(spam)", "(a -> b)"),
    *("<=", "<", ">=", ">", "=", "->", "≤", "5", "1,000", "0.5", ".5", "90%", "%", "percent", "0"),
    *(",", ";", "and", "\n", ".", "(", ")", "-", '"', "'", "9" * 20),
]
tokens = st.lists(st.sampled_from(TOKENS), max_size=12)
token_texts = st.one_of(tokens.map(" ".join), tokens.map("".join))
sentence_texts = st.builds(
    "{} {} {} {}".format,
    st.sampled_from(["at most", "no more than", "<", "at least", "more than", "max"]),
    st.sampled_from(["0", "1", "2%", "12 percent", "1,000", "0.25", "100%"]),
    st.sampled_from(["", "of", "of the", "samples"]),
    st.sampled_from(["fp", "fnr", "ham predicted spam", "spam rejected", "tnr of a", "accuracy"]),
)


@settings(max_examples=300)
@given(st.text(max_size=40) | token_texts | sentence_texts)
def test_any_text_is_parsed_or_refused_with_a_code(text):
    error = None
    try:
        wish = Preference(text)
    except PreferenceError as refused:
        error = refused
    if error is None:
        assert Preference(str(wish)) == wish
        return
    assert error.code in {"syntax", "unknown_word", "not_a_count", "not_a_fraction", "conflict"}
    start, end = error.fields["span"]
    assert 0 <= start < end <= len(text) + 1


@pytest.mark.parametrize(
    "text",
    [
        " " * 200_000 + "x",
        "fp <= 5" + " " * 200_000 + "x",
        "a " * 100_000,
        "a-" * 100_000,
        "(" * 200_000,
        "fp(" + "a-" * 100_000,
        "fp(" + '"' * 200_001,
        'fp("' + '""->' * 50_000,
        "9" * 200_000,
        "1" + ",000" * 50_000,
        "fp <= " + "1," * 100_000,
        "<" * 200_000,
        "fp <= 5 and " * 200 + "x",
        "at most " * 50_000,
        "false" + " -" * 100_000,
        "errors(" + " " * 100_000 + "->" + " " * 100_000,
        "errors(a" + " " * 100_000 + "-> b" + " " * 100_000 + "x)",
        "recall(" + "\n" * 200_000,
        "recall of " + "'a''" * 50_000,
        "a." * 100_000 + "-",
    ],
)
def test_long_texts_are_refused_soon(text):
    failing(text)  # in quadratic time the test would not end


pieces = [
    "a",
    "a-",
    "a.",
    " ",
    "\n",
    '"',
    "'",
    '""',
    "(",
    ")",
    "->",
    "-",
    "<",
    ",",
    "1",
    "1,000",
    "é",
]
pieces += [
    "and ",
    "recall(",
    "errors(",
    "fp <= 5, ",
    "of ",
    "no ",
    "false ",
    "%",
    "is ",
    "predicted ",
]
long_texts = st.lists(
    st.tuples(st.sampled_from(pieces), st.sampled_from([1, 2, 500, 20_000])), min_size=1, max_size=5
)


def seconds_of(text):
    """The processor time for a text, whatever else the machine does."""
    start = time.thread_time()
    with contextlib.suppress(PreferenceError):
        Preference(text)
    return time.thread_time() - start


@cache
def seconds_of_bounds():
    return seconds_of("fp <= 5, " * 2_200)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["", "recall(", "errors(a -> ", "recall of ", "fp <= "]), long_texts)
@example("recall(", [(" ", 20_000)])
def test_a_long_text_takes_about_as_long_as_one_with_as_many_bounds(start, parts):
    text = start + "".join((piece * times)[: 20_000 // len(parts)] for piece, times in parts)
    # In quadratic time it would be a hundred times as long.
    assert seconds_of(text) < 5 * seconds_of_bounds()


def test_a_message_quotes_the_start_of_a_long_word():
    error = failing("a" * 20_000)
    assert len(error.summary) < 500
    assert error.fields["word"] == "a" * 20_000
