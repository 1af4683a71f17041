"""A plan counts whole samples: no count is one too many or one too few."""

import numpy as np
import pytest
from tests.steer.populations import along

from margrave.steer._plan import Draws, certify_draws

DELTA = 0.05


@pytest.mark.core
@pytest.mark.parametrize(("n", "certified"), [(28, False), (29, True)])
def test_a_path_tests_no_more_samples_than_there_are(n, certified):
    """Without an error among them, 0.9**28 is more than 5 %, and 0.9**29 is less."""
    draws = Draws.of(np.full(n, -1.0), np.zeros(n, dtype=np.intp))
    found = certify_draws(along("fp <= 10%", [0.0]), draws, DELTA)
    assert found.certified.tolist() == [certified]
