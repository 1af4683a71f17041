"""
A martingale program before and after tuning
============================================

Martingale boosting sends samples through layers of learners. Each prediction is a vote, and the
votes so far determine the next node. This example draws such a program on Spambase, with the
test samples that reach its nodes, before and after tuning to a preference. See
:doc:`/explanation/martingale`.
"""

# %%
# A program
# ---------
#
# The program has seven layers of logistic regressions. Circles are learners: the more samples
# arrive, the larger the circle, and its colour shows their classes. A diamond had samples of
# only one class in training and always predicts this class.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from margrave import Confusion
from margrave.compare import MartingaleDisplay
from margrave.datasets import load
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic

X, y = load("spambase", return_X_y=True)
X, X_test, y, y_test = train_test_split(
    X, y, test_size=0.4, stratify=y, random_state=0
)
X, X_tune, y, y_tune = train_test_split(
    X, y, test_size=1 / 3, stratify=y, random_state=0
)
program = MartingaleBoostClassifier(n_levels=7).fit(X, y)
_, ax = plt.subplots(figsize=(9, 7))
MartingaleDisplay(program.measured(X_test, y_test)).plot(ax=ax)
plt.tight_layout()

# %%
# The program tuned to at most ten false positives
# ------------------------------------------------
#
# The tuned program needs more evidence to predict spam, so more samples end on the other side.

tuned = program.tune("fp <= 10", X_tune, y_tune)
print(tuned.tuning_)
_, ax = plt.subplots(figsize=(9, 7))
MartingaleDisplay(tuned.measured(X_test, y_test)).plot(ax=ax)
plt.tight_layout()

# %%
# What fewer false positives cost
# -------------------------------
#
# The limit on false positives falls step by step, for one logistic regression and for the
# program. The grey line is the regression with a moved threshold. On the tuning set, the tuned
# regression is never above this line. On new data it may be, because tuning can overfit the
# tuning set. A preference that is met on the tuning set is therefore not a guarantee. By
# default, a regression keeps the moved threshold unless another model is clearly better.


def count_errors(model, X, y):
    """Count false positives and false negatives."""
    matrix = Confusion.of(y, model.predict(X))
    return matrix.fp, matrix.fn


def threshold_curve(model, X, y):
    """Count the errors at every threshold of the untuned model."""
    order = np.argsort(-model.decision_function(X))
    spam = y[order] == "spam"
    return np.cumsum(~spam), spam.sum() - np.cumsum(spam)


regression = TunableLogistic().fit(X, y)
limits = [25, 20, 15, 10, 5, 2]
models = {
    "one regression": [
        regression.tune(f"fp <= {n}", X_tune, y_tune, min_gain=0) for n in limits
    ],
    "program": [program.tune(f"fp <= {n}", X_tune, y_tune) for n in limits],
}
parts = {"tuning set": (X_tune, y_tune), "new data": (X_test, y_test)}
_, axes = plt.subplots(1, 2, figsize=(10, 4.5))
for ax, (title, part) in zip(axes, parts.items(), strict=True):
    ax.plot(
        *threshold_curve(regression, *part), color="0.6", label="moved threshold"
    )
    for name, tuned_models in models.items():
        points = [count_errors(model, *part) for model in tuned_models]
        ax.plot(*np.array(points).T, "o-", label=name)
    ax.set(title=title, xlabel="false positives", ylabel="false negatives")
    ax.set(xlim=(0, 0.07 * len(part[1])), ylim=(0, 0.3 * len(part[1])))
axes[0].legend()
plt.tight_layout()
