"""The value of a confusion matrix that is minimised, by its definition."""

from margrave import Confusion, Preference


def value_of(preference: Preference, matrix: Confusion) -> tuple[float, int, float, int, int]:
    """The shortfall, the classes that are never predicted, the goal, the errors, the rejected."""
    shortfall = round(preference.shortfall(matrix), 9)
    unpredicted = int((matrix.counts[:, :-1].sum(axis=0) == 0).sum())
    goal = float((matrix.counts * preference.goal(matrix).costs(matrix)).sum())
    return shortfall, unpredicted, goal, matrix.n_errors, matrix.n_rejected
