"""
Steering a spam filter
======================

State which errors you can tolerate, see what this costs, and get a model with a certificate.
This example plots the steps of the tutorial :doc:`/tutorials/python`.
"""

# %%
# The frontier and the steps of a dialog
# --------------------------------------
#
# Every threshold on the score of the committee or of a member trades false positives against
# false negatives. Three requests move along the frontier: at most 2 % of nonspam predicted spam,
# then at most 1 %, then at most 3 % of spam predicted nonspam.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from margrave.datasets import load
from margrave.steer import Dialog

X, y = load("spambase", return_X_y=True)
X, X_new, y, y_new = train_test_split(
    X, y, test_size=1000, stratify=y, random_state=0
)
dialog = Dialog.from_data(X, y, guarantee="fp <= 2%", random_state=0)
for preference in ("fp <= 2%", "fp <= 1%", "fn <= 3%"):
    dialog.prefer(preference)
trajectory = [(reply.after.fp, reply.after.fn) for reply in dialog.history]
_, ax = plt.subplots(figsize=(9, 6))
display = dialog.frontier().plot(ax, trajectory=trajectory, parents=dialog.parents)
plt.tight_layout()

# %%
# The optimal threshold for each cost ratio and prior
# ---------------------------------------------------
#
# The cost of a missed spam email and the proportion of spam are rarely known. For each
# combination of the two, one threshold is optimal. A threshold that is not on this map is never
# optimal.

_, ax = plt.subplots(figsize=(9, 6))
display.plot_winners(ax=ax)
plt.tight_layout()

# %%
# Thresholds with and without a guarantee
# ---------------------------------------
#
# The scores of the nonspam emails are split into halves 2,000 times. The first half sets a
# threshold, and the second half takes the place of new emails. If the threshold is the 98 %
# quantile of the first half, more than 2 % of the new emails are above it in the fraction of
# splits that the legend shows. The certified threshold has a true rate above 2 % at most one
# time in twenty. On a finite number of new emails, the rate exceeds 2 % a little more often. The
# cost is that the certified threshold misses more spam. See :doc:`/explanation/certificate`.

from scipy.stats import binom

scores = dialog.model.decision_function(X_new[y_new == "nonspam"])
n_first = len(scores) // 2
counts = np.arange(n_first)
n_above = {
    "quantile": int(0.02 * n_first),
    "certified": int(counts[binom.cdf(counts, n_first, 0.02) <= 0.05].max()),
}
generator = np.random.default_rng(0)
rates: dict[str, list[float]] = {name: [] for name in n_above}
for _ in range(2000):
    shuffled = generator.permutation(scores)
    first, second = np.sort(shuffled[:n_first]), shuffled[n_first:]
    for name, n in n_above.items():
        rates[name].append(100 * np.mean(second > first[n_first - n - 1]))
_, ax = plt.subplots(figsize=(9, 4))
bins = (np.arange(21) - 0.5) * 100 / (len(scores) - n_first)  # one for each count
for name, values in rates.items():
    exceeded = np.mean(np.array(values) > 2)
    label = f"{name}: above 2 % in {exceeded:.0%} of the splits"
    ax.hist(values, bins=bins, alpha=0.6, label=label)
ax.axvline(2, color="black", linestyle="--")
ax.set(xlabel="false positives on new nonspam emails (%)", ylabel="splits")
ax.legend()
plt.tight_layout()
