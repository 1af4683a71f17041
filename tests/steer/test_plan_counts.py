"""Counts that decide a certificate: one sample more or fewer changes its plan or its result."""

import numpy as np
import pytest
from tests.steer.populations import along, single

from margrave import Preference
from margrave.confusion import Objective
from margrave.steer._order_statistic import largest_allowed_count
from margrave.steer._plan import Draws, certify_draws, make_plan
from margrave.steer._thresholds import Threshold

DELTA = 0.05


@pytest.mark.core
@pytest.mark.parametrize(("n", "certified"), [(28, False), (29, True)])
def test_a_path_tests_no_more_samples_than_there_are(n, certified):
    """Without an error among them, 0.9**28 is more than 5 %, and 0.9**29 is less."""
    draws = Draws.of(np.full(n, -1.0), np.zeros(n, dtype=np.intp))
    found = certify_draws(along("fp <= 10%", [0.0]), draws, DELTA)
    assert found.certified.tolist() == [certified]


@pytest.mark.parametrize(("n", "tested"), [(35, True), (36, False)])
def test_with_too_few_samples_for_half_of_the_error_probability_a_path_is_planned(n, tested):
    """0.9**35 is more than 2.5 %, which each of two limits gets without a path; 0.9**36 is less."""
    scores, codes = np.repeat([-1.0, 1.0], 100), np.repeat([0, 1], 100)
    wanted = Preference("fp <= 10%, fn <= 10%")
    objective = Objective(wanted, codes, (0, 1))
    plan = make_plan(wanted, Threshold(0.0, 0.0), scores, objective, np.array([n, 100]), DELTA)
    assert bool(plan.path) == tested
    draws = Draws.of(np.repeat([-1.0, 1.0], [n, 100]), np.repeat([0, 1], [n, 100]))
    assert certify_draws(plan, draws, DELTA).certified.all()


@pytest.mark.parametrize("more", [0, 1])
def test_exactly_as_many_samples_are_rejected_as_are_allowed(more):
    n = 200
    allowed = largest_allowed_count(n, 0.2, DELTA / 2)  # the limit on fp gets the other half
    n_rejected = allowed + more
    scores = np.concatenate([np.full(100, -1.0), np.full(n_rejected, 0.5)])
    scores = np.concatenate([scores, np.full(n - len(scores), 2.0)])
    draws = Draws.of(scores, (scores > 0).astype(np.intp))
    plan = single("fp <= 50%, rejected <= 20%, then fewest errors", 0.0, 1.0)
    found = certify_draws(plan, draws, DELTA)
    assert found.certified.all()
    assert found.matrices[0, :, -1].sum() == (0 if more else allowed)
