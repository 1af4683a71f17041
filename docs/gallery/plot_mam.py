"""
Maximal average margin beside a support vector machine
======================================================

Figure 1 of *A Risk Minimization Principle for a Class of Parzen Estimators* (Pelckmans et al.,
2008): the maximal-average-margin classifier and a support vector machine on Ripley's data, with
lines that score how certain a prediction is.
"""

# %%
# The data and the two classifiers
# --------------------------------
#
# There are 250 training samples and 1,000 test samples. Exact leave-one-out selects the width of
# the kernel, in one pass for all fifteen widths; the support vector machine uses the same width.

import matplotlib.pyplot as plt
from sklearn.svm import SVC

from margrave.compare import CertaintyDisplay
from margrave.datasets import load
from margrave.mam import MAMClassifier, SVMCertainty

train, test = load("ripley_train"), load("ripley_test")
mam = MAMClassifier().fit(train.data, train.target)
svm = SVC(gamma=mam.gamma_).fit(train.data, train.target)
svm_certainty = SVMCertainty(svm, train.data, train.target)
print(f"test error: MAM {1 - mam.score(test.data, test.target):.1%}", end=", ")
print(f"SVM {1 - svm.score(test.data, test.target):.1%}")

# %%
# Figure 1
# --------
#
# A line connects points with the same margin. Its label is an upper bound on the error rate of the
# predictions beyond it, from the 1,000 test samples with δ = 0.05. On the right corollary 1 of the
# paper clips the scores of the SVM at 1, the edge of its margin, so that all lines are inside its
# margin: predictions beyond it have the same certainty. The average margin depends on all samples;
# the SVM depends on those near its margin only.

figure, axes = plt.subplots(
    1, 2, figsize=(10, 4.4), sharey=True, layout="constrained"
)
CertaintyDisplay.from_estimator(
    mam, train.data, train.target, held_out=(test.data, test.target), ax=axes[0]
)
axes[0].set_title("maximal average margin")
CertaintyDisplay.from_estimator(
    svm_certainty,
    train.data,
    train.target,
    held_out=(test.data, test.target),
    ax=axes[1],
)
axes[1].set(title="support vector machine", ylabel="")
plt.show()

# %%
# The bounds of the paper
# -----------------------
#
# With 250 samples neither theorem 2 nor corollary 1 gives a guarantee: the deviation term alone is
# larger than one half. With more samples the bound for the SVM would not be a guarantee either: it
# does not include that gamma was selected on the same samples. The counts on held-out samples are
# usable.

for model in (mam, svm_certainty):
    certainty = model.certainty(test.data[:3], held_out=(test.data, test.target))
    print(*certainty.in_words(), sep="\n")
