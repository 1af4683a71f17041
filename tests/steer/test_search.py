"""The search for a reply: something at once, better as it comes, and the best kept at any end."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave.confusion import Objective, Preference, PreferenceError
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, SteeredClassifier, StoppedError, _strategies
from margrave.steer._thresholds import Threshold, best_decision
from margrave.steer._tuning_data import Candidate

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(0, 2, 200)
X = RANDOM.normal(size=(200, 3)) + Y[:, None] * [1.0, 0.5, 0.0]
WANTED = "fp <= 10"


@pytest.fixture
def dialog():
    return Dialog(LogisticRegression().fit(X[:100], Y[:100]), X[100:], Y[100:])


class Gains:
    """A slow strategy that knows the labels: each candidate has fewer errors than the last."""

    name, slow = "gains", True

    def __init__(self, n=3, after=None):
        self.n, self.after, self.started, self.given = n, after, 0, 0

    def candidates(self, request):
        self.started += 1
        start, codes = request.known[0], request.data.codes
        answers = best_decision(request.objective, start.scores).predict(start.scores)
        wrong = np.flatnonzero(answers != codes)
        wrong = wrong[np.argsort(-codes[wrong])]  # the cost first: no bound speaks of fn
        for i in range(1, self.n + 1):
            better = answers.copy()
            right = wrong[: i * len(wrong) // self.n]
            better[right] = codes[right]
            self.given += 1
            yield Candidate(self.name, start.scorer, 2.0 * better - 1, Threshold(0.0, 0.0))
        if self.after is not None:
            raise self.after


class Raises:
    """A strategy that offers nothing and ends in an exception."""

    rejects = False

    def __init__(self, error, slow, name="raises"):
        self.error, self.slow, self.name = error, slow, name

    def candidates(self, request):
        if request is not None:
            raise self.error
        yield


@pytest.fixture
def with_strategies(monkeypatch):
    def change(*strategies, kept=2):
        monkeypatch.setattr(
            _strategies,
            "DEFAULT_STRATEGIES",
            (*_strategies.DEFAULT_STRATEGIES[:kept], *strategies),
        )

    return change


def values(replies, wanted=WANTED):
    objective = Objective(Preference(wanted), Y[100:], (0, 1), 1)
    return [objective.evaluate(reply.candidate.predictions) for reply in replies]


def test_a_first_reply_comes_before_any_slow_strategy_is_begun(dialog, with_strategies):
    strategy = Gains()
    with_strategies(strategy)
    replies = dialog.replies(WANTED)
    assert strategy.started == 0
    first = next(replies)
    assert (first.strategy, first.final, first.met) == ("move", False, True)
    assert str(first) != str(replace(first, final=True))
    assert strategy.started == 0
    assert dialog.position == 0, "what is not final is not kept yet"
    assert next(replies).strategy == "gains"
    assert (strategy.started, strategy.given) == (1, 1)
    replies.close()


def test_replies_only_get_better_and_the_last_is_kept(dialog, with_strategies):
    with_strategies(Gains(5))
    replies = list(dialog.replies(WANTED))
    reported = values(replies)
    assert len(replies) == 7
    assert all(later < sooner for sooner, later in pairwise(reported[:-1]))
    assert reported[-1] == reported[-2]
    assert [reply.final for reply in replies] == [False] * 6 + [True]
    assert not any(reply.cancelled for reply in replies)
    assert [reply.n_candidates for reply in replies] == [1, 2, 3, 4, 5, 6, 6]
    assert replies[-1].after.fp == replies[-1].after.fn == 0
    assert len(dialog.history) == 2


def test_the_last_reply_is_the_one_in_the_history(dialog, with_strategies):
    with_strategies(Gains())
    *_, last = dialog.replies(WANTED)
    assert last == dialog.reply
    assert last is dialog.history[-1]


def test_candidates_that_are_no_better_give_no_reply(dialog, with_strategies):
    with_strategies(Gains(1), Gains(1))
    assert [reply.strategy for reply in dialog.replies(WANTED)] == ["move", "gains", "gains"]
    assert dialog.reply.n_candidates == 3


def test_all_strategies_of_the_real_ones():
    members = [TunableLogistic(), GaussianNB()]
    dialog = Dialog([one.fit(X[:100], Y[:100]) for one in members], X[100:], Y[100:])
    strategies = ["move", "reject", "retune"]
    replies = list(dialog.replies("fp <= 4, rejected <= 10%", strategies=strategies))
    reported = values(replies, "fp <= 4, rejected <= 10%")
    assert reported == sorted(reported, reverse=True)
    assert replies[-1].final
    # Move and reject; tuned alone and in its place.
    assert replies[-1].n_candidates == 2 + 2
    assert replies[0].n_candidates == 2


def test_leaving_the_loop_keeps_the_best_and_says_so(dialog, with_strategies):
    strategy = Gains(5)
    with_strategies(strategy)
    for reply in dialog.replies(WANTED):
        if reply.n_candidates == 3:
            break
    assert dialog.position == 1
    assert dialog.reply.cancelled
    assert dialog.reply.final
    assert dialog.reply.after == reply.after
    assert strategy.given == 2
    assert str(dialog.reply) != str(replace(dialog.reply, cancelled=False))


def test_replies_that_are_never_begun_change_nothing(dialog):
    replies = dialog.replies(WANTED)
    replies.close()
    assert len(dialog.history) == 1


def test_what_makes_no_sense_is_refused_before_the_first_reply(dialog):
    with pytest.raises(PreferenceError, match="'eggs'"):
        dialog.replies("fp(eggs) <= 1")
    with pytest.raises(ValueError, match=r"\bstrategies\b.*'walk'"):
        dialog.replies(WANTED, strategies=["walk"])


def test_a_callback_sees_every_reply_and_may_stop(dialog, with_strategies):
    with_strategies(Gains(5))
    seen = []
    reply = dialog.prefer(WANTED, callback=seen.append)
    assert len(seen) == 7
    assert reply is dialog.reply
    assert not reply.cancelled
    strategy = Gains(5)
    with_strategies(strategy)
    dialog.goto(0)
    stopped = dialog.prefer(WANTED, callback=lambda reply: reply.n_candidates >= 2)
    assert stopped.cancelled
    assert strategy.given == 1
    assert dialog.position == 2


def test_a_callback_that_stops_at_the_last_reply_cancelled_nothing(dialog, with_strategies):
    with_strategies(Gains(2))
    assert not dialog.prefer(WANTED, callback=lambda reply: reply.final).cancelled


def test_stop_is_asked_between_candidates(dialog, with_strategies):
    strategy = Gains(9)
    with_strategies(strategy)
    reply = dialog.prefer(WANTED, stop=lambda: strategy.given >= 4)
    assert reply.cancelled
    assert reply.final
    assert strategy.given == 4
    assert reply is dialog.reply
    assert reply.n_candidates == 1 + 4


def test_one_who_has_stopped_gets_the_fast_reply():
    members = [TunableLogistic(), GaussianNB()]
    dialog = Dialog([one.fit(X[:100], Y[:100]) for one in members], X[100:], Y[100:])
    reply = dialog.prefer(WANTED, strategies=["move", "retune"], stop=lambda: True)
    assert (reply.strategy, reply.n_candidates, reply.cancelled) == ("move", 1, True)


def test_a_search_that_is_stopped_before_its_first_candidate_makes_no_step():
    """It did not fail: a studio that ends leaves it to the next process."""
    dialog = Dialog([TunableLogistic().fit(X[:100], Y[:100])], X[100:], Y[100:])
    with pytest.raises(StoppedError):
        dialog.prefer(WANTED, strategies=["retune"], stop=lambda: True)
    assert len(dialog.history) == 1
    assert dialog.prefer(WANTED, strategies=["retune"]).strategy == "retune"


def test_no_slow_strategy_is_begun_after_a_stop(dialog, with_strategies):
    """A way may work for long before its first option, and need not ask by itself."""
    strategy = Gains()
    with_strategies(strategy)
    dialog.prefer(WANTED, stop=lambda: True)
    assert strategy.started == 0


def test_an_interrupt_in_a_slow_strategy_keeps_the_best(dialog, with_strategies):
    with_strategies(Gains(2, after=KeyboardInterrupt()))
    reply = dialog.prefer(WANTED)
    assert reply is dialog.reply
    assert reply.cancelled
    assert reply.final
    assert reply.strategy == "gains"
    assert reply.after.fp == 0
    assert len(dialog.history) == 2


def test_an_interrupt_in_the_callback_keeps_the_best(dialog, with_strategies):
    with_strategies(Gains(3))

    def interrupt(reply):
        if reply.n_candidates == 2:
            raise KeyboardInterrupt

    assert dialog.prefer(WANTED, callback=interrupt).cancelled


def test_an_interrupt_while_the_final_reply_is_saved_adds_no_second_step(
    dialog, with_strategies, tmp_path, monkeypatch
):
    with_strategies(Gains(1))
    dialog.autosave(tmp_path / "dialog.skops")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(dialog), "save", interrupt)
    dialog.prefer(WANTED)
    assert len(dialog.history) == 2


def test_an_interrupt_while_a_classifier_is_fitted_keeps_the_best():
    X, y = make_classification(300, random_state=0)
    strategies = ["move", Raises(KeyboardInterrupt(), slow=True)]
    model = SteeredClassifier(
        LogisticRegression(), preference="fp <= 20%", strategies=strategies, random_state=0
    )
    assert model.fit(X, y).certificate_.strategy == "move"


def test_an_interrupt_before_anything_was_found_goes_through(dialog, with_strategies):
    dialog.prefer(WANTED)
    with_strategies(Raises(KeyboardInterrupt(), slow=False), kept=0)
    with pytest.raises(KeyboardInterrupt):
        dialog.prefer("fn <= 3")
    assert (len(dialog.history), dialog.position) == (2, 1)
    with_strategies(Raises(KeyboardInterrupt(), slow=True), kept=0)
    with pytest.raises(KeyboardInterrupt):
        dialog.prefer("fn <= 3")
    assert (len(dialog.history), dialog.position) == (2, 1)


def test_an_interrupt_among_fast_strategies_either_keeps_or_goes_through(dialog, with_strategies):
    """Not both: who gets the interrupt must find the dialog where it was."""
    with_strategies(Raises(KeyboardInterrupt(), slow=False))
    try:
        reply = dialog.prefer(WANTED)
    except KeyboardInterrupt:
        assert (len(dialog.history), dialog.position) == (1, 0)
    else:
        assert reply.cancelled


@pytest.mark.parametrize("slow", [False, True])
def test_an_error_in_a_strategy_is_raised_and_is_no_cancelling(dialog, with_strategies, slow):
    with_strategies(Raises(ZeroDivisionError("of a way"), slow))
    with pytest.raises(ZeroDivisionError, match="of a way"):
        dialog.prefer(WANTED)
    assert not any(reply.cancelled for reply in dialog.history), "nobody cancelled"


def test_an_error_in_a_strategy_leaves_the_dialog_in_use(dialog, with_strategies):
    with_strategies(Raises(ZeroDivisionError("of a way"), slow=True))
    with pytest.raises(ZeroDivisionError):
        dialog.prefer(WANTED)
    with_strategies()
    dialog.goto(0)
    assert dialog.prefer(WANTED).met


def test_requests_that_overlap_each_hang_where_they_were_asked(dialog, with_strategies):
    with_strategies(Gains(2))
    slow = dialog.replies(WANTED)
    next(slow)
    dialog.prefer("fn <= 5")
    list(slow)
    assert [str(reply.preference) for reply in dialog.history] == ["None", "fn <= 5", WANTED]
    assert dialog.history[2].before == dialog.history[0].after
    assert dialog.undo() is dialog.history[0]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("fp <= 5", False),
        ("fp <= 5, rejected <= 0", False),
        ("fp <= 5, rejected <= 0%", False),
        ("rejected <= 1", True),
        ("fp <= 5, rejected(1) <= 2%", True),
    ],
)
def test_what_may_reject(text, may):
    assert Preference(text).allows_rejecting == may


def test_each_candidate_gets_its_own_decision():
    """Also temporary ones, which may be at the same address in memory one after another."""

    class Shifted:
        name, slow, rejects = "shifted", False, False

        def candidates(self, request):
            start = request.known[0]
            for shift in range(20):
                decision = request.decide(
                    Candidate("x", None, start.scores + shift, start.decision)
                )
                assert decision == best_decision(request.objective, start.scores + shift)
            yield start

    X, y = make_classification(200, random_state=0)
    dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    assert dialog.prefer("fp <= 90%", strategies=[Shifted()]).met
