"""Confusion matrices, and preferences: limits on them in words, ``"fp <= 5, recall(spam) >= 90%"``.

Every word stands for a sum of cells of the matrix, the *amount*, and for the cells that it is a
fraction of, the *base*; so a bound is one linear inequality in the counts. From it follow whether a
matrix meets the bound, by how many samples it falls short, and whether several bounds can hold
together. Counts are integers and limits are exact fractions, so rounding never decides whether a
matrix meets a bound.

=========================  ==============================================  =========================
word                       amount                                          base
=========================  ==============================================  =========================
``fp``, ``fp(c)``          other classes predicted as c (the positive)     samples of other classes
``fn``, ``fn(c)``          c (the positive) predicted as another class     samples of c
``correct(c)``             c predicted as c; without c, all correct        samples of c; all samples
``errors(a -> b)``         a predicted as b; without a -> b, all errors    samples of a; all samples
``alarms``, ``alarms(c)``  samples predicted as c (the positive)           all samples
``rejected(c)``            rejected samples of c; without c, of any class  samples of c; all samples
``recall(c)``              c predicted as c                                samples of c
``precision(c)``           c predicted as c                                samples predicted as c
``accuracy``               all correct                                     all samples
=========================  ==============================================  =========================

The limit ``5`` is a count in the given matrix, ``5%`` a fraction; recall, precision and accuracy
are always fractions (``0.9`` or ``90%``). Rejected samples stay in the base. A preference that does
not mention ``rejected`` allows no rejected sample; otherwise rejecting every sample would meet any
limit on errors. If it limits the rejected samples of some classes, the same limits hold for those
of all other classes together. A fraction of an empty base does not meet its limit.

A bound may use other words and another order; the printed form is always the one above:

====================================================  ==============================
text                                                  bound
====================================================  ==============================
"at most 30 false positives", "fp max 30"             ``fp <= 30``
"no false positives"                                  ``fp <= 0``
"fewer than 30 fp", ``fp < 30``                       ``fp <= 29``
``FPR < 2%``, "false positive rate below 2 percent"   ``fp <= 2%``
"miss rate at most 5%", ``fnr <= 0.05``               ``fn <= 5%``
``specificity >= 95%``, ``TNR >= 0.95``               ``fp <= 5%``
"sensitivity at least 90%", ``tpr >= 0.9``            ``recall >= 90%``
"recall of spam at least 90%", "spam recall >= 90%"   ``recall(spam) >= 90%``
"at most 2% of ham predicted as spam"                 ``errors(ham -> spam) <= 2%``
"at most 5 spam rejected"                             ``rejected(spam) <= 5``
"error rate at most 5%"                               ``errors <= 5%``
====================================================  ==============================

A limit is an allowance: among the decisions that meet the bounds, those with the fewest errors that
no bound limits are the best. A text can state another goal at its end: ``fp <= 2%, then fewest
errors``, ``then fewest fn`` or ``then lowest cost of fp + 20 fn``.

For a count, ``<`` and "fewer than" exclude the number itself. For a fraction they do not: ``< 2%``
means ``<= 2%``. Words that end in "rate", and their abbreviations, are always fractions.
"""

from margrave.confusion._bounds import Bound, PreferenceError
from margrave.confusion._bounds import format_decimal as format_decimal
from margrave.confusion._bounds import quote_label as quote_label
from margrave.confusion._confusion import Confusion
from margrave.confusion._goal import FEWEST_ERRORS as FEWEST_ERRORS
from margrave.confusion._goal import BoundsAndGoal as BoundsAndGoal
from margrave.confusion._goal import Goal
from margrave.confusion._grammar import parse_bounds as parse_bounds
from margrave.confusion._grammar import parse_goal as parse_goal
from margrave.confusion._objective import Objective as Objective
from margrave.confusion._objective import ObjectiveValue as ObjectiveValue
from margrave.confusion._objective import count_predictions as count_predictions
from margrave.confusion._objective import find_smallest as find_smallest
from margrave.confusion._preference import Preference
from margrave.confusion._tally import Tally as Tally
from margrave.confusion._tally import are_separated as are_separated
from margrave.confusion._tally import balanced_threshold as balanced_threshold
from margrave.confusion._tally import midpoint as midpoint

# Names imported with "as" are for the other packages of Margrave.
__all__ = ["Bound", "Confusion", "Goal", "Preference", "PreferenceError"]
