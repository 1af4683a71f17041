"""
A program before and after tuning
=================================

Martingale boosting sends samples through layers of learners; each prediction is a vote, and a
node stands for the votes so far. This example draws such a program on Spambase, with the test
samples that reach its nodes, before and after tuning to a preference.
"""

# %%
# A program
# ---------
#
# Seven layers of logistic regressions. Circles are learners, larger where more samples arrive;
# colours show their classes. Diamonds saw only one class in training and predict it.

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
# At most ten false alarms
# ------------------------
#
# The tuned program needs more evidence to predict spam: samples drift to the other side.

tuned = program.tune("fp <= 10", X_tune, y_tune)
print(tuned.tuning_)
_, ax = plt.subplots(figsize=(9, 7))
MartingaleDisplay(tuned.measured(X_test, y_test)).plot(ax=ax)
plt.tight_layout()

# %%
# What it costs
# -------------
#
# The same request for fewer and fewer false alarms, on the tuning set and on new data, for one
# logistic regression and for the program. The grey line is the regression with its threshold moved.
# On the tuning set the tuned regression is never above it; on new data it may be, since a
# tuning set can be overfitted. Meeting a preference there is therefore not a guarantee, and by
# default a regression returns the moved threshold unless another model is clearly better.


def mistakes(model, X, y):
    """False positives and false negatives."""
    matrix = Confusion.of(y, model.predict(X))
    return matrix.fp, matrix.fn


def threshold_curve(model, X, y):
    """The mistakes at every threshold of the untuned model."""
    order = np.argsort(-model.decision_function(X))
    spam = y[order] == "spam"
    return np.cumsum(~spam), spam.sum() - np.cumsum(spam)


line = TunableLogistic().fit(X, y)
wanted = [25, 20, 15, 10, 5, 2]
models = {
    "one regression": [
        line.tune(f"fp <= {n}", X_tune, y_tune, min_gain=0) for n in wanted
    ],
    "program": [program.tune(f"fp <= {n}", X_tune, y_tune) for n in wanted],
}
parts = {"tuning set": (X_tune, y_tune), "new data": (X_test, y_test)}
_, axes = plt.subplots(1, 2, figsize=(10, 4.5))
for ax, (title, part) in zip(axes, parts.items(), strict=True):
    ax.plot(*threshold_curve(line, *part), color="0.6", label="moved threshold")
    for name, tuned_models in models.items():
        points = [mistakes(model, *part) for model in tuned_models]
        ax.plot(*np.array(points).T, "o-", label=name)
    ax.set(title=title, xlabel="false positives", ylabel="false negatives")
    ax.set(xlim=(0, 0.07 * len(part[1])), ylim=(0, 0.3 * len(part[1])))
axes[0].legend()
plt.tight_layout()
