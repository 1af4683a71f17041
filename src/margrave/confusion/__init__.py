"""What a user wants of a confusion matrix, in words: ``"fp <= 5, recall(spam) >= 90%"``.

Every word is a sum of cells of the matrix, the *amount*, and the cells it is a share of, the
*base*; so a bound is one linear inequality in the counts. Whether it is met, how many samples it
is short of, and whether several can hold together follow from that. Counts are whole numbers and
limits are fractions, so whether a matrix meets them is not a matter of rounding.

========================  =====================================  =========================
word                      amount                                 as a share of
========================  =====================================  =========================
``fp``, ``fp(c)``         other classes called c (positive)      the other classes' samples
``fn``, ``fn(c)``         c (positive) called another class      the samples of c
``correct(c)``            c called c; without c, all correct     the samples of c; all
``errors(a -> b)``        a called b; without a -> b, all errors  the samples of a; all
``alarms``, ``alarms(c)``  anything called c (positive)          all samples: a budget
``rejected(c)``           c given no answer; without c, any      the samples of c; all
``recall(c)``             c called c                             the samples of c
``precision(c)``          c called c                             whatever was called c
``accuracy``              all correct                            all samples
========================  =====================================  =========================

``5`` is a count in the matrix at hand, ``5%`` a share; recall, precision and accuracy are always
shares (``0.9`` or ``90%``). Rejected samples stay in the base. A preference that does not mention
``rejected`` allows none, else rejecting everything would meet anything. A share of no samples at
all is not met.
"""

from margrave.confusion._bounds import Bound, PreferenceError
from margrave.confusion._confusion import Confusion
from margrave.confusion._preference import Preference

# For the other packages of Margrave.
from margrave.confusion._bounds import format_decimal as format_decimal  # isort: skip
from margrave.confusion._bounds import quote_label as quote_label  # isort: skip
from margrave.confusion._objective import Objective as Objective  # isort: skip
from margrave.confusion._objective import ObjectiveValue as ObjectiveValue  # isort: skip
from margrave.confusion._objective import count_predictions as count_predictions  # isort: skip
from margrave.confusion._thresholds import Tally as Tally  # isort: skip
from margrave.confusion._thresholds import are_separated as are_separated  # isort: skip
from margrave.confusion._thresholds import balanced_threshold as balanced_threshold  # isort: skip
from margrave.confusion._thresholds import midpoint as midpoint  # isort: skip

__all__ = ["Bound", "Confusion", "Preference", "PreferenceError"]
