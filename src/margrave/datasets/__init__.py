"""The data sets of the source papers, by name.

=================  ===============================================================================
used by            sets
=================  ===============================================================================
Marrocco et al.    ``australian``, ``balance_bin``, ``breast_wisconsin``, ``cleveland_bin``,
                   ``contraceptive_bin``, ``hayes_roth_bin``, ``housing_bin``, ``ionosphere``,
                   ``liver``, ``sonar``
Pelckmans et al.,  ``ripley_train``, ``ripley_test``; Rätsch's thirteen: ``raetsch_*``,
classifying        ``ringnorm``, ``twonorm``, ``pima``, ``heart_statlog``; the originals of some:
                   ``breast_ljubljana``, ``german``, ``segment``, ``titanic``
Pelckmans et al.,  ``abalone``, ``auto_mpg``, ``diabetes_cpeptide``, ``housing``,
ranking            ``machine_cpu``, ``pyrimidines``, ``stock``, ``triazines``, ``wpbc``
Kulkarni et al.    ``spambase``, ``sonar``, ``ionosphere``, ``liver``, ``splice``, ``iris``
=================  ===============================================================================

The papers are Marrocco et al. (2010), Pelckmans et al. (2008) and Kulkarni et al. (2016). A name
that ends in ``_bin`` is the two-class version of a set, with the labels 1 and -1.
"""

from margrave.datasets._load import load, names

__all__ = ["load", "names"]
