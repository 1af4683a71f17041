"""
How rank-margin weights change the margins
==========================================

Rank-margin weights order the worst pairs of a positive and a negative sample with the largest
margin. Figures 1 and 2 of *A Linear Combination of Classifiers via Rank Margin Maximization*
(Marrocco et al., 2010) show the distribution of all margins. This example draws them for the
members, for their mean, and for committees with different fractions ν of the pairs. One panel
shows the tuning set, which the weights were computed on, and the other shows the test set. See
:doc:`/howto/rank`.
"""

# %%
# Members and weights
# -------------------
#
# As in the paper, the members are five Modest AdaBoost classifiers with different random initial
# weights. Each data set is split into three sets: for training, for the weights, and for
# testing. Scores are in [-1, 1], as in the paper, so all margins are in [-2, 2].

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from margrave import Scores, catalogue
from margrave.compare import RankMarginDisplay
from margrave.datasets import load
from margrave.fuse import RankMarginClassifier, rank_margin_weights
from margrave.pairs import CrucialPairs


def in_thirds(data):
    """Split samples and labels for training, tuning and testing."""
    X, y = load(data, return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=1 / 3, stratify=y, random_state=0
    )
    X, X_tune, y, y_tune = train_test_split(
        X, y, test_size=1 / 2, stratify=y, random_state=0
    )
    return (X, y), (X_tune, y_tune), (X_test, y_test)


def weighted(members, tuning):
    """Return the weights of each member alone, of the mean, and of the committees."""
    weights = dict(zip(dict(members), np.eye(len(members)), strict=True))
    weights["mean"] = np.full(len(members), 1 / len(members))
    for nu in (0, 0.1, "cv"):
        committee = RankMarginClassifier(
            members, prefit=True, scale="probability", nu=nu
        ).fit(*tuning)
        name = f"ν = {committee.nu_:g}" + (", by cv" if nu == "cv" else "")
        weights[name] = committee.weights_
    return weights


def draw(ax, scores, y, weights, members):
    """Draw the distributions of the margins: members in grey, the others in colour."""
    values = scores.toward()
    named = {name: values @ weight for name, weight in weights.items()}
    shown = RankMarginDisplay.from_predictions(y, named, normalise=False, ax=ax)
    lines = list(shown.lines_.values())
    alone, others = lines[: len(members)], lines[len(members) :]
    aucs = [shown.aucs[name] for name, _ in members]
    for line in alone:
        line.set(color="0.75", linestyle="-", linewidth=1, zorder=1)
    alone[0].set_label(f"the members (AUC {min(aucs):.3f} to {max(aucs):.3f})")
    colours = "#009E73", "#D55E00", "#0072B2", "#E69F00"
    dashes = "--", "-", "-", "-."
    for line, colour, dash in zip(others, colours, dashes, strict=True):
        line.set(color=colour, linestyle=dash)
    ax.legend(
        handles=[*others, alone[0]],
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )


def figure(data):
    """Draw two panels: the tuning set and the test set."""
    training, tuning, testing = in_thirds(data)
    members = [
        (f"modest {i}", catalogue.make("modest-adaboost", random_state=i))
        for i in range(5)
    ]
    members = [(name, member.fit(*training)) for name, member in members]
    weights = weighted(members, tuning)
    tune = Scores.of(members, tuning[0])
    test = Scores.of(members, testing[0], like=tune)  # on the same scale
    _, axes = plt.subplots(
        2, 1, figsize=(8.4, 7.4), layout="constrained", sharex=True
    )
    draw(axes[0], tune, tuning[1], weights, members)
    draw(axes[1], test, testing[1], weights, members)
    axes[0].set(title=f"{data}: tuning set", xlabel="")
    axes[1].set(title=f"{data}: test set")
    for ax in axes:
        ax.set_ylabel("fraction of pairs with\nat most that margin")
    axes[0].set_xlim(right=0.4)  # beyond it all curves are alike
    return members, tune, tuning[1], test, testing[1]


# %%
# Figure 1: Contraceptive
# -----------------------
#
# A curve is better the lower it is, and the further to the right. The dot at its left end is the
# worst pair. The height at a margin of 0 is the fraction of pairs in the wrong order. The axis
# of fractions is logarithmic, so the left half of the picture shows very few pairs.
#
# With ν = 0, only the dot matters. Here the weights select a single member, whose worst pair is
# slightly better than that of the others. Its curve is soon above the others, and its AUC is
# that of one member. The other committees hardly differ from the mean, because the members are
# similar.

_ = figure("contraceptive_bin")

# %%
# Figure 2: Liver
# ---------------
#
# This data set is smaller, and its members differ more. All combinations move the low end to the
# right, by less on the test set than on the tuning set. A single member has the best AUC on the
# test set, but on the tuning set another member is best.

members, tune, y_tune, test, y_test = figure("liver")
plt.show()

# %%
# The worst margins by ν
# ----------------------
#
# These are the same members on Liver, weighted for several ν. *Worst* is the margin of the worst
# pair, and *worst 10%* is the mean margin of that fraction of the pairs.


def margins(scores, y, weights):
    pairs = CrucialPairs.of(scores.toward() @ weights, y)
    rho = pairs.quantile(0.1)
    tail = rho - pairs.hinge(rho).total / (0.1 * pairs.n_pairs)
    return pairs.rank_margin, tail, pairs.mean_margin, pairs.auc


print(f"{'':4}   {'tuning set':<33}  test set")
print("   ν" + 2 * "   worst  worst 10%   mean    AUC  ")
for nu in (0, 0.02, 0.1, 0.5, 1):
    weights = rank_margin_weights(tune, y_tune, nu=nu).weights
    shown = f"{nu:4g}"
    for scores, y in ((tune, y_tune), (test, y_test)):
        worst, tail, mean, auc = margins(scores, y, weights)
        shown += f"  {worst:6.2f}     {tail:6.2f} {mean:6.2f}  {auc:.3f}  "
    print(shown)

# %%
# On the tuning set, each ν is best at what it maximizes: 0 at the worst pair, 0.1 at the worst
# 10 %, and 1, which selects a single member, at the mean. On the test set, neither 0 nor 1 is
# best in any column: the worst pair of 115 samples says little about other samples, and a single
# member is not a committee. Values in between do well. By default, cross-validation selects ν.
