"""
Maximal average margin and a tuned support vector machine
=========================================================

This example draws figure 1 of *A Risk Minimization Principle for a Class of Parzen Estimators*
(Pelckmans et al., 2008). It shows the maximal-average-margin (MAM) classifier and a support
vector machine (SVM) on Ripley's data, with lines that bound the error rate of the predictions
beyond them. See :doc:`/howto/average_margin` for the method.
"""

# %%
# The data and the two classifiers
# --------------------------------
#
# There are 250 training samples and 1,000 test samples. For the MAM classifier, exact
# leave-one-out selects the width of the kernel among fifteen. For the SVM, a grid search with
# cross-validation selects the penalty ``C`` and the width ``gamma``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from margrave.compare import CertaintyDisplay
from margrave.datasets import load
from margrave.mam import MAMClassifier, SVMCertainty

train, test = load("ripley_train"), load("ripley_test")
mam = MAMClassifier().fit(train.data, train.target)
search = GridSearchCV(
    SVC(),
    {"C": np.logspace(-1, 3, 9), "gamma": np.logspace(-2, 2, 9)},
    cv=StratifiedKFold(10, shuffle=True, random_state=0),
).fit(train.data, train.target)
svm = search.best_estimator_
print(f"SVM: C = {svm.C:.3g}, gamma = {svm.gamma:.3g}")
svm_certainty = SVMCertainty(svm, train.data, train.target)
print(f"test error: MAM {1 - mam.score(test.data, test.target):.1%}", end=", ")
print(f"SVM {1 - svm.score(test.data, test.target):.1%}")

# %%
# A single data set does not rank two methods. :doc:`/papers/pelckmans` compares them on many.

# %%
# Figure 1
# --------
#
# A line connects points with the same margin. Its label is an upper bound on the error rate of
# the predictions beyond it, computed on the 1,000 test samples with δ = 0.05. On the right,
# corollary 1 of the paper clips the scores of the SVM at 1, the edge of its margin. All
# predictions beyond the edge therefore have the same certainty. The MAM classifier depends on
# all training samples, the SVM only on those near its margin.

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
# With 250 samples, neither theorem 2 nor corollary 1 gives a guarantee: the deviation term alone
# is larger than one half. With more samples, the bound for the SVM would still not be a
# guarantee, because it ignores that ``C`` and ``gamma`` were selected on the same samples. The
# counts on held-out samples are usable.

for model in (mam, svm_certainty):
    certainty = model.certainty(test.data[:3], held_out=(test.data, test.target))
    print(*certainty.in_words(), sep="\n")
