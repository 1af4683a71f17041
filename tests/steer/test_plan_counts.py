"""Counts that decide a certificate: one sample more or fewer changes what is planned or certified."""

import numpy as np
import pytest
from tests.steer.populations import along

from margrave import Preference
from margrave.confusion import Objective
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
