"""What an error is made of, computed from a table of predictions: one function a loss.

Survey of Ensemble Classifiers (Nair, 2015), section 3, equation (1):

    error = bias² + variance + irreducible error.

That holds for the squared loss. For the zero-one loss the parts are those of P. Domingos, "A
unified bias-variance decomposition", ICML 2000: with y_m the main (most frequent) prediction, y*
the best one and N the noise at a point,

    error = c₁·N + bias + c₂·variance,   bias = [y_m ≠ y*],   variance = P(y ≠ y_m),

c₂ = 1 where y_m = y*, else −P(y = y* | y ≠ y_m), which is −1 with two classes. The survey's sum
without signs would be wrong there: where the main prediction is wrong, variance *helps*.

Single labels do not show the noise. Without the true probabilities y* is the label at hand, N is
0, and the noise is part of the bias.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats


@dataclass(frozen=True, eq=False)
class PointTerms:
    """The terms at each test point; ``error = net_noise + bias + net_variance`` in every place.

    Parameters
    ----------
    error : ndarray of shape (n_test,)
        Expected loss.
    bias : ndarray of shape (n_test,)
        Loss of the main prediction: squared bias, or 0 and 1.
    variance : ndarray of shape (n_test,)
        Expected loss of a prediction against the main one.
    net_variance : ndarray of shape (n_test,)
        What the variance adds to the error (c₂·variance); below 0 where it helps.
    noise : ndarray of shape (n_test,)
        Expected loss of the best prediction; 0 where single labels hide it.
    net_noise : ndarray of shape (n_test,)
        What the noise adds to the error (c₁·noise).
    """

    error: Floats
    bias: Floats
    variance: Floats
    net_variance: Floats
    noise: Floats
    net_noise: Floats


def squared_terms(predictions: Floats, truth: Floats, noise: Floats) -> PointTerms:
    """Decompose the squared loss, summed over the last axis.

    Parameters
    ----------
    predictions : ndarray of shape (n_rounds, n_test, n_outputs)
        What was predicted in each round.
    truth : ndarray of shape (n_test, n_outputs)
        The expected target: labels as 0 and 1 in the column of their class, true probabilities, or
        the values of a regression.
    noise : ndarray of shape (n_test,)
        Variance of the target around it; 0 if not known.

    Returns
    -------
    terms : PointTerms
        Here the net terms are the terms themselves.
    """
    main = predictions.mean(axis=0)
    variance = np.square(predictions - main).sum(axis=2).mean(axis=0)
    return PointTerms(
        error=np.square(predictions - truth).sum(axis=2).mean(axis=0) + noise,
        bias=np.square(main - truth).sum(axis=1),
        variance=variance,
        net_variance=variance,
        noise=noise,
        net_noise=noise,
    )


def zero_one_terms(predictions: NDArray[np.intp], truth: Floats) -> PointTerms:
    """Decompose the zero-one loss.

    Parameters
    ----------
    predictions : ndarray of shape (n_rounds, n_test)
        Positions of the predicted classes.
    truth : ndarray of shape (n_test, n_classes)
        True probabilities, or labels as 0 and 1 in the column of their class.

    Returns
    -------
    terms : PointTerms
        Ties for the main and the best prediction go to the first class.
    """
    points = np.arange(predictions.shape[1])
    # share[i, c] = P(y = c) at point i over the rounds.
    share = np.stack([(predictions == c).mean(axis=0) for c in range(truth.shape[1])], axis=1)
    main, best = share.argmax(axis=1), truth.argmax(axis=1)
    right = share[points, best]
    biased = main != best
    variance = 1 - share[points, main]
    noise = 1 - truth[points, best]
    # P(y = t, t ≠ y*), with prediction y and target t independent.
    lucky = (share * truth).sum(axis=1) - right * truth[points, best]
    return PointTerms(
        error=1 - (share * truth).sum(axis=1),
        bias=biased.astype(np.float64),
        variance=variance,
        # P(y = y* | y ≠ y_m)·P(y ≠ y_m) is P(y = y*) where y_m ≠ y*.
        net_variance=np.where(biased, -right, variance),
        noise=noise,
        # c₁ = P(y = y*) − P(y ≠ y*)·P(y = t | y ≠ y*, t ≠ y*), times N = P(t ≠ y*).
        net_noise=right * noise - lucky,
    )
