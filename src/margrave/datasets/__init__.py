"""The data sets of the source documents, by name.

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

Marrocco et al. combine classifiers by their rank margin, Pelckmans et al. study the maximal average
margin, Kulkarni et al. interactive martingale boosting. A name that ends in ``_bin`` is
the two-class version, 1 and -1, of the set of that name.
"""

from margrave.datasets._load import load, names

__all__ = ["load", "names"]
