"""The data sets of the source documents, by name.

========  =====================================  =================================================
document  about                                  sets
========  =====================================  =================================================
000       rank margin                            ``australian``, ``balance_bin``,
                                                 ``breast_wisconsin``, ``cleveland_bin``,
                                                 ``contraceptive_bin``, ``hayes_roth_bin``,
                                                 ``housing_bin``, ``ionosphere``, ``liver``,
                                                 ``sonar``
002       maximal average margin, classifying    ``ripley_train``, ``ripley_test``; Rätsch's
                                                 thirteen: ``raetsch_*``, ``ringnorm``,
                                                 ``twonorm``, ``pima``, ``heart_statlog``; the
                                                 originals of some: ``breast_ljubljana``,
                                                 ``german``, ``segment``, ``titanic``
002       maximal average margin, ranking        ``abalone``, ``auto_mpg``,
                                                 ``diabetes_cpeptide``, ``housing``,
                                                 ``machine_cpu``, ``pyrimidines``, ``stock``,
                                                 ``triazines``, ``wpbc``
004       interactive martingale boosting        ``spambase``, ``sonar``, ``ionosphere``,
                                                 ``liver``, ``splice``, ``iris``
========  =====================================  =================================================

A name that ends in ``_bin`` is the two-class version, 1 and -1, of the set of that name. Documents
001 and 003 use no data.
"""

from margrave.datasets._load import load, names

__all__ = ["load", "names"]
