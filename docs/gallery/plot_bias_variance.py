"""
Bias, variance, and what bagging does to them
=============================================

A model that is too simple is wrong in the same way whatever data it saw: bias. A model that is too
flexible is wrong in a different way each time: variance. Figure 1 of the *Survey of Ensemble
Classifiers* (Nair, 2015) sketches how the two trade places as a model grows. Here the figure is
measured, on data whose truth is known, and then bagging removes a good part of the variance.
"""

# %%
# Data with a known truth
# -----------------------
#
# Two classes on the unit square, with a wavy border between them. One label in ten is flipped, so
# the true probability of class 1 is 0.9 on one side and 0.1 on the other. Because we made the data,
# we know it, and can tell noise from bias.

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
# Figure 1, measured
# ------------------
#
# Trees of growing depth, each trained on 40 resamples of the 300 samples. The squared error of
# their probabilities is bias² + variance + noise, at every depth. Shallow trees miss the wave;
# deep ones chase the flipped labels; the best depth lies between.

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
    title="First the bias falls, then the variance grows",
    xlabel="depth of the tree",
)
display.ax_.set_ylim(bottom=0)

# %%
# Bagging lowers the variance
# ---------------------------
#
# A full tree has more variance than bias. Averaging 20 of them, each from its own resample, takes
# most of the variance away and hardly touches the bias. Smoothed bagging adds Gaussian noise to the
# resamples: no tree can then follow a flipped label exactly, and their mean moves less still.

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
# The same numbers as bars. The noise is the same for all three, and no model can remove it.

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
ax.set(xlabel="squared loss", title="What the error is made of")
ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.25))
plt.show()
