"""
What it costs to be careful
===========================

A committee that must answer every message makes mistakes where its members disagree. If it may
leave those messages to a person, it makes fewer. Here the share of votes that an answer needs is
raised step by step, from half of them to all.
"""

# %%
# A committee of five
# -------------------
#
# Spambase is split in three: for training, for the weights of the votes, and for counting. The five
# members are of different kinds, so that they do not all make the same mistakes. Three of
# them depend on the scale of the features, and get them scaled.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrave import Confusion, catalogue
from margrave.datasets import load
from margrave.fuse import VoteClassifier

spam = load("spambase")
X, X_rest, y, y_rest = train_test_split(
    spam.data, spam.target, train_size=2000, stratify=spam.target, random_state=0
)
X_weigh, X_test, y_weigh, y_test = train_test_split(
    X_rest, y_rest, train_size=600, stratify=y_rest, random_state=0
)

members = []
for name in ("tree", "random-forest", "knn", "logistic", "svm"):
    member = catalogue.make(name, random_state=0)
    if name in ("knn", "logistic", "svm"):
        member = make_pipeline(StandardScaler(), member)
    members.append((name, member.fit(X, y)))


def count(**settings):
    """The confusion matrix of a vote by the trained members."""
    vote = VoteClassifier(members, prefit=True, **settings).fit(X_weigh, y_weigh)
    return Confusion.of(
        y_test, vote.predict(X_test), reject_label=vote.reject_label_
    )


# %%
# One vote each
# -------------
#
# With five equal votes there are three steps only: three, four or five votes for an answer. Five of
# five is unanimity.

steps = {
    "3 of 5": count(threshold=0.6),
    "4 of 5": count(threshold=0.8),
    "5 of 5": count(rule="unanimity"),
}
for votes, matrix in steps.items():
    print(f"{votes}\n{matrix}\n")

# %%
# Weighted votes
# --------------
#
# Weights that follow the members' accuracy make finer steps: which four agree now matters. Every
# share of the votes that some winner has is a step.

vote = VoteClassifier(members, prefit=True, weights="accuracy").fit(
    X_weigh, y_weigh
)
shares = vote.predict_proba(X_test).max(axis=1)
weighted = []
for alpha in np.unique(shares):
    answers = vote.set_params(threshold=alpha).predict(X_test)
    weighted.append(Confusion.of(y_test, answers, reject_label=vote.reject_label_))

# %%
# The price
# ---------
#
# To the right the committee rejects more. What it still answers is wrong less often, and fewer good
# messages are called spam. The first rejected messages buy the most; the last false positives are
# messages on which all members agree, and no threshold helps against these.


def error_of_answers(matrix):
    """Mistakes, as a share of the samples that were answered."""
    return (matrix.fp + matrix.fn) / (matrix.n - matrix.n_rejected)


fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharex=True)
panels = [
    ("error among the answered, %", lambda matrix: 100 * error_of_answers(matrix)),
    ("false positives", lambda matrix: matrix.fp),
]
for ax, (title, measure) in zip(axes, panels, strict=True):
    rejected = [100 * matrix.rejected for matrix in weighted]
    ax.plot(
        rejected,
        [measure(matrix) for matrix in weighted],
        color="#0072B2",
        marker=".",
        label="weighted by accuracy",
    )
    for votes, matrix in steps.items():
        at = 100 * matrix.rejected, measure(matrix)
        ax.plot(*at, "o", color="#D55E00", markersize=8, label="one vote each")
        ax.annotate(votes, at, xytext=(9, 4), textcoords="offset points")
    ax.set(title=title, xlabel="rejected, %")
    ax.margins(x=0.15, y=0.1)
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
handles, labels = axes[0].get_legend_handles_labels()
axes[0].legend(handles[:2], labels[:2], frameon=False, loc="lower left")
plt.show()

# %%
# Which point to take is a matter of what a person's time and a lost message cost. The test samples
# were only counted here; if you choose a point by this figure, count it again on other samples.
