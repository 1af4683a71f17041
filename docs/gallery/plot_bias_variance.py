"""
How bagging changes bias and variance
=====================================

A model that is too simple makes the same errors whatever its training data: it has a high bias.
A model that is too flexible makes different errors each time: it has a high variance. Figure 1
of the *Survey of Ensemble Classifiers* (Nair, 2015) sketches both terms as a model grows. This
example measures them on data whose true probabilities are known, and shows how bagging reduces
the variance. See :doc:`/explanation/bias_variance`.
"""

# %%
# Data with known probabilities
# -----------------------------
#
# Two classes fill the unit square, with a wavy border between them. One label in ten is flipped,
# so the true probability of class 1 is 0.9 on one side and 0.1 on the other. Because these
# probabilities are known, noise and bias can be separated.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.RandomState(0)


def draw(n):
    X = rng.uniform(size=(n, 2))
    above = X[:, 1] > 0.5 + 0.3 * np.sin(2 * np.pi * X[:, 0])
    proba = np.where(above, 0.9, 0.1)
    y = (rng.uniform(size=n) < proba).astype(int)
    return X, y, np.column_stack([1 - proba, proba])


X, y, _ = draw(300)
X_test, y_test, true_proba = draw(400)

# %%
# Figure 1 with measured values
# -----------------------------
#
# Trees of each depth are trained on 40 resamples of the 300 samples. At every depth, the squared
# error of their probabilities is bias² + variance + noise. Shallow trees cannot follow the
# border, and deep trees fit the flipped labels. The best depth lies in between.

from margrave import catalogue
from margrave.compare import BiasVarianceDisplay, bias_variance

settings = {"n_rounds": 40, "true_proba": true_proba, "random_state": 0}
display = BiasVarianceDisplay.from_estimator(
    catalogue.make("tree"),
    X,
    y,
    X_test,
    y_test,
    param_name="max_depth",
    param_range=range(1, 11),
    **settings,
)
display.ax_.set(
    title="The bias falls and the variance grows with the depth",
    xlabel="depth of the tree",
)
display.ax_.set_ylim(bottom=0)

# %%
# Bagging lowers the variance
# ---------------------------
#
# A full tree has more variance than bias. The average of 20 trees, each trained on its own
# resample, has much less variance and about the same bias. Smoothed bagging adds Gaussian noise
# to the resamples. No tree can then fit a flipped label exactly, and the variance falls further.

models = {
    "one tree": catalogue.make("tree"),
    "bagging": catalogue.make("bagging", n_estimators=20),
    "smoothed bagging": catalogue.make(
        "smoothed-bagging", n_estimators=20, noise=0.3
    ),
}
parts = {
    name: bias_variance(model, X, y, X_test, y_test, **settings)
    for name, model in models.items()
}
for name, result in parts.items():
    print(f"{name}: {result}\n")

# %%
# The bars show the same numbers. The noise is the same for all three, and no model can remove
# it.

terms = {"noise": "#bbbbbb", "bias": "#0072B2", "variance": "#D55E00"}
labels = {"noise": "noise", "bias": "bias²", "variance": "variance"}
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
left = np.zeros(len(parts))
for term, color in terms.items():
    widths = np.array([getattr(result, term) for result in parts.values()])
    ax.barh(list(parts), widths, left=left, color=color, label=labels[term])
    left += widths
ax.invert_yaxis()
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(left=False)
ax.set(xlabel="squared loss", title="Terms of the squared error")
ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.25))
plt.show()
