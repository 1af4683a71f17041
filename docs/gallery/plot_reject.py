"""
Fewer errors by rejecting samples
=================================

A committee makes many of its errors where its members disagree. If it may reject these samples,
for a person to decide, it makes fewer errors. This example raises the fraction of votes that a
prediction needs, step by step, from half of them to all. See :doc:`/howto/vote`.
"""

# %%
# A committee of five
# -------------------
#
# Spambase is split into three sets: for training, for the weights of the votes, and for testing.
# The five members are of different kinds, so that they do not all make the same errors. Three of
# them depend on the scale of the features and are trained on scaled features.

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
X_weight, X_test, y_weight, y_test = train_test_split(
    X_rest, y_rest, train_size=600, stratify=y_rest, random_state=0
)

members = []
for name in ("tree", "random-forest", "knn", "logistic", "svm"):
    member = catalogue.make(name, random_state=0)
    if name in ("knn", "logistic", "svm"):
        member = make_pipeline(StandardScaler(), member)
    members.append((name, member.fit(X, y)))


def count(**settings):
    """Count the predictions of a vote by the trained members in a confusion matrix."""
    vote = VoteClassifier(members, prefit=True, **settings).fit(X_weight, y_weight)
    return Confusion.of(
        y_test, vote.predict(X_test), reject_label=vote.reject_label_
    )


# %%
# One vote each
# -------------
#
# With five equal votes there are only three steps: three, four or five votes for a prediction.
# Five of five is unanimity.

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
# Weights by the accuracy of the members make finer steps, because it now matters which four
# members agree. Every fraction of the votes that a winning class has is a step.

vote = VoteClassifier(members, prefit=True, weights="accuracy").fit(
    X_weight, y_weight
)
fractions = vote.predict_proba(X_test).max(axis=1)
weighted = []
for alpha in np.unique(fractions):
    predictions = vote.set_params(threshold=alpha).predict(X_test)
    weighted.append(
        Confusion.of(y_test, predictions, reject_label=vote.reject_label_)
    )

# %%
# Errors against rejected samples
# -------------------------------
#
# To the right the committee rejects more emails. Its predictions for the others are wrong less
# often, and fewer good emails are predicted spam. The first rejected emails reduce the errors
# most. All members agree on the last false positives, so no threshold removes them.


def error_of_predicted(matrix):
    """Compute the error rate among the samples that are not rejected."""
    return (matrix.fp + matrix.fn) / (matrix.n - matrix.n_rejected)


fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharex=True)
panels = [
    ("error among the others, %", lambda matrix: 100 * error_of_predicted(matrix)),
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
# The best point depends on the cost of a person's time and of a lost email. If you choose a point
# by this figure, evaluate it again on other samples.
