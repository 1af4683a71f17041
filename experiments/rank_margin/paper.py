"""The numbers that Marrocco et al. (2010) print.

Tables 2 and 3: mean AUC and standard deviation over ten runs, and which of them are bold. Of table
1, the data sets, with remarks where the table is incomplete or differs from the data.
"""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("RankMargin", "RankBoost", "SVM")


@dataclass(frozen=True)
class Source:
    """A data set of the paper.

    Attributes
    ----------
    name : str
        Its name in `margrave.datasets`.
    positive : object
        The label of N⁺.
    remark : str
        What the paper does not specify, or prints differently from the data.
    """

    name: str
    positive: object
    remark: str = ""


SOURCES = {
    "Australian": Source("australian", 1),
    "Balance": Source(
        "balance_bin",
        1,
        "the printed 54.01 % of positives is impossible with 625 rows; left and balanced against "
        "right has 53.92 %.",
    ),
    "Breast": Source(
        "breast_wisconsin",
        "benign",
        "16 features are printed, which is the number of missing values; the data has 9. We use "
        "the 683 complete rows.",
    ),
    "Cleveland": Source("cleveland_bin", 1),
    "Contraceptive": Source("contraceptive_bin", 1),
    "Hayes": Source(
        "hayes_roth_bin", 1, "132 rows are printed; classes 1 and 2 have 129 of the 160 rows."
    ),
    "Housing": Source(
        "housing_bin",
        1,
        "12 features are printed, without the name of the one that is left out; we use all 13.",
    ),
    "Ionosphere": Source("ionosphere", "good"),
    "Liver": Source("liver", 2),
    "Sonar": Source("sonar", "M", "260 rows are printed; the data has 208."),
}

# For each number of members: (mean, standard deviation) of RankMargin, RankBoost and SVM.
TABLES = {
    5: {
        "Australian": ((0.935, 0.008), (0.920, 0.008), (0.929, 0.009)),
        "Balance": ((0.984, 0.001), (0.959, 0.016), (0.986, 0.004)),
        "Breast": ((0.991, 0.001), (0.979, 0.003), (0.979, 0.010)),
        "Cleveland": ((0.885, 0.010), (0.840, 0.026), (0.858, 0.025)),
        "Contraceptive": ((0.751, 0.024), (0.752, 0.013), (0.762, 0.012)),
        "Hayes": ((0.885, 0.014), (0.865, 0.030), (0.893, 0.039)),
        "Housing": ((0.942, 0.007), (0.924, 0.012), (0.940, 0.012)),
        "Ionosphere": ((0.962, 0.003), (0.927, 0.011), (0.944, 0.019)),
        "Liver": ((0.737, 0.033), (0.707, 0.035), (0.721, 0.032)),
        "Sonar": ((0.892, 0.016), (0.837, 0.033), (0.875, 0.036)),
    },
    7: {
        "Australian": ((0.932, 0.007), (0.920, 0.008), (0.921, 0.010)),
        "Balance": ((0.984, 0.001), (0.959, 0.016), (0.985, 0.004)),
        "Breast": ((0.991, 0.001), (0.979, 0.003), (0.972, 0.010)),
        "Cleveland": ((0.884, 0.007), (0.840, 0.026), (0.847, 0.022)),
        "Contraceptive": ((0.753, 0.015), (0.751, 0.012), (0.758, 0.011)),
        "Hayes": ((0.888, 0.010), (0.864, 0.030), (0.878, 0.025)),
        "Housing": ((0.942, 0.005), (0.924, 0.012), (0.932, 0.014)),
        "Ionosphere": ((0.962, 0.002), (0.927, 0.011), (0.931, 0.020)),
        "Liver": ((0.737, 0.021), (0.707, 0.035), (0.702, 0.034)),
        "Sonar": ((0.891, 0.012), (0.837, 0.033), (0.863, 0.037)),
    },
}

# For each number of members, the methods in bold: "statistically better performance on such data
# set" by Friedman's test and Holm's procedure.
BOLD = {
    5: {
        "Australian": {"RankMargin"},
        "Balance": {"SVM"},
        "Breast": {"RankMargin"},
        "Cleveland": {"RankMargin"},
        "Contraceptive": {"SVM"},
        "Hayes": {"SVM"},
        "Housing": {"RankMargin", "SVM"},
        "Ionosphere": {"RankMargin"},
        "Liver": {"RankMargin"},
        "Sonar": {"RankMargin"},
    },
    7: {
        "Australian": {"RankMargin"},
        "Balance": {"SVM"},
        "Breast": {"RankMargin"},
        "Cleveland": {"RankMargin"},
        "Contraceptive": {"SVM"},
        "Hayes": {"RankMargin"},
        "Housing": {"RankMargin"},
        "Ionosphere": {"RankMargin"},
        "Liver": {"RankMargin"},
        "Sonar": {"RankMargin"},
    },
}
