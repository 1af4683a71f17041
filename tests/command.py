"""What the tests of the command share: a small table, two fast members, and a call of it."""

import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from margrave import cli
from margrave.martingale import TunableLogistic
from margrave.steer import _start

PAIR = [("logistic", TunableLogistic()), ("bayes", GaussianNB())]
STEER = ("steer", "mail.csv", "--target", "spam", "--limit", "fp <= 10%", "--out", "model.skops",
         "--dialog", "dialog.skops", "--report", "page.html",
         "--strategies", "move,retune")  # fmt: skip


def mail(n=300, seed=0, wrong=0.0):
    """Numbers with gaps, a category, dates and a text; about a third is spam.

    A proportion of the labels is wrong, so that members make mistakes.
    """
    rng = np.random.default_rng(seed)
    spam = rng.random(n) < 0.35
    good, bad = ["agenda", "lunch"], ["prize", "offer"]
    texts = [
        " ".join(
            np.where(rng.random(6) < (0.6 if s else 0.1), rng.choice(bad, 6), rng.choice(good, 6))
        )
        for s in spam
    ]
    links = np.round(rng.normal(2.5 * spam, 1), 2)
    links[rng.random(n) < 0.05] = np.nan
    sender = np.where(rng.random(n) < 0.3, "shop", np.where(spam, "unknown", "friend"))
    label = spam ^ (rng.random(n) < wrong)
    return pd.DataFrame(
        {
            "links": links,
            "sender": sender,
            "sent": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(n), unit="D"),
            "body": texts,
            "spam": np.where(label, "yes", "no"),
        }
    )


def call(*arguments):
    """Run the command; return its exit code, its output and its errors."""
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as end, redirect_stdout(out), redirect_stderr(err):
        cli.main([str(one) for one in arguments])
    return end.value.code, out.getvalue(), err.getvalue()


def suggests_time(err):
    """Return whether the errors are only the suggestion of `--time` for the dates of the mail."""
    return err.count("\n") == 1 and "--time sent" in err


def steer_mail(folder, wrong=0.0):
    """Write a table into a folder, and steer two members on it; return the command's output."""
    mail(wrong=wrong).to_csv(folder / "mail.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(_start, "default_committee", lambda *_, **__: PAIR)
        code, out, err = call(*STEER)
    assert (code, suggests_time(without_progress(err))) == (0, True)
    return out


def replaced(options, *more):
    """Options with one value each, but for those that others replace, and the others."""
    pairs = zip(options[::2], options[1::2], strict=True)
    kept = [pair for pair in pairs if pair[0] == "--limit" or pair[0] not in more]
    return (*(part for pair in kept for part in pair), *more)


def without_progress(err):
    """What a command printed to the standard error, but for the lines of its progress."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not re.search(r", \d+:\d\d$", line))
