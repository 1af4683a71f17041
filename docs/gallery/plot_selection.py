"""
Select the competent member
===========================

This is the example of *Multi-classifiers* (lecture slides), Selection (ii): 2,000 points of two
classes and three classifiers, each with an accuracy of about one half. A vote is no better. If
the competent classifier is selected for each point, nearly all predictions are correct. See
:doc:`/howto/select`.
"""

# %%
# The points and the three classifiers
# ------------------------------------
#
# On the left there is only the first class, mostly above. On the right there is only the second
# class, mostly below. In the middle a line separates the classes, with the second class above.
# The first classifier always predicts the first class, and the second always the second class.
# The third is the line, with probabilities near 0 and 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from margrave.compare import RegionDisplay
from margrave.fuse import VoteClassifier
from margrave.select import (
    LocalSelectionClassifier,
    MixtureOfExpertsClassifier,
    Oracle,
    RegionSelectionClassifier,
    SingleBestClassifier,
)

random = np.random.default_rng(0)


def points(n):
    X = random.uniform([-3, 0], [3, 1], size=(n, 2))
    left, right = X[:, 0] < -1, X[:, 0] > 1
    above = random.random(n) < np.select([left, right], [0.75, 0.25], 0.5)
    X[~above, 1] *= -1
    return X, np.select([left, right], [1, 2], np.where(above, 2, 1))


X, y = points(2000)
X_new, y_new = points(2000)
corners = [[0, -1], [0, 1]]
members = [
    (
        "always 1",
        DummyClassifier(strategy="constant", constant=1).fit(corners, [1, 2]),
    ),
    (
        "always 2",
        DummyClassifier(strategy="constant", constant=2).fit(corners, [1, 2]),
    ),
    ("logistic", LogisticRegression(C=1e6).fit(corners, [1, 2])),
]

# %%
# Accuracy
# --------
#
# The members are already fitted. The 2,000 points are the tuning set, and 2,000 other points are
# the test set. No selection among these three members can beat the oracle.

models = {
    "vote": VoteClassifier(members, prefit=True),
    "best": SingleBestClassifier(members, prefit=True),
    "k-means, 12 regions": RegionSelectionClassifier(
        members, n_regions=12, prefit=True, random_state=0
    ),
    "regions of members": RegionSelectionClassifier(
        members, "members", prefit=True, random_state=0
    ),
    "local, KNORA-E": LocalSelectionClassifier(members, "knora-e", prefit=True),
    "mixture of experts": MixtureOfExpertsClassifier(members, C=10, prefit=True),
}
for name, member in members:
    print(f"{name:20} {np.mean(member.predict(X_new) == y_new):.3f}")
for name, model in models.items():
    print(f"{name:20} {model.fit(X, y).score(X_new, y_new):.3f}")
print(
    f"{'oracle':20} {Oracle(members, prefit=True).fit(X, y).score(X_new, y_new):.3f}"
)

# %%
# The member of each region
# -------------------------
#
# In the middle, several members are competent: above the line the second constant is as accurate
# as the line, below it the first constant.

figure, axes = plt.subplots(
    1, 3, figsize=(11, 3.4), sharey=True, layout="constrained"
)
for ax, name in zip(axes, list(models)[2:5], strict=True):
    RegionDisplay.from_estimator(
        models[name], X[:200], y[:200], resolution=90, ax=ax
    )
    ax.set(title=name, ylabel="")
plt.show()

# %%
# The weights of a mixture of experts
# -----------------------------------
#
# The mixture has no regions: the weights of the members change gradually. Sharp borders need a
# large ``C``, that is, a weak penalty. With the default of 0.1, the mixture ignores the line,
# and its accuracy is 0.92.

x, height = np.linspace(-3, 3, 90), np.linspace(-1, 1, 90)
grid = np.stack(np.meshgrid(x, height), axis=-1).reshape(-1, 2)
weights = models["mixture of experts"].gate(grid)

figure, axes = plt.subplots(
    1, 3, figsize=(11, 3.4), sharey=True, layout="constrained"
)
for ax, (name, _), weight in zip(axes, members, weights.T, strict=True):
    image = ax.contourf(x, height, weight.reshape(90, 90), np.linspace(0, 1, 11))
    ax.set(title=f"weight of {name!r}", xlabel="feature 0")
figure.colorbar(image, ax=axes)
plt.show()

# %%
# Explanations
# ------------
#
# ``explain`` shows which member is selected for a sample, and why.

print(models["regions of members"].explain([[-2, 0.5], [2, 0.5], [0, -0.5]]))
