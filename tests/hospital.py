"""A table like a hospital's: several visits of each patient, mostly healthy ones."""

import numpy as np
import pandas as pd

FEATURES = ["pressure", "sugar"]


def draw_visits(rng, n_patients, days=400):
    """Draw the visits of patients, in random order.

    A patient has values of their own, and is ill at some visits. Patients with many visits differ
    from the others, so that rates over visits are not rates over patients.
    """
    n_visits = 1 + rng.poisson(3, n_patients)
    who = np.repeat(np.arange(n_patients), n_visits)
    ill = rng.random(len(who)) < rng.beta(0.6, 1.8, n_patients)[who]
    own = rng.normal(scale=0.8, size=n_patients)[who] + 0.3 * (n_visits[who] - 4)
    visits = pd.DataFrame(
        {
            "patient": [f"P{number:05d}" for number in who],
            "day": rng.integers(0, days, n_patients)[who] + rng.integers(0, 60, len(who)),
            "pressure": own + 1.8 * ill + rng.normal(scale=0.6, size=len(who)),
            "sugar": rng.normal(size=len(who)) + 1.2 * ill,
            "outcome": np.where(ill, "disease", "healthy"),
        }
    )
    return visits.iloc[rng.permutation(len(visits))].reset_index(drop=True)


def rate_over_patients(model, visits, label):
    """The error rate of a class: of a random patient with it, at one of these visits."""
    of_class = visits[visits["outcome"] == label]
    wrong = pd.Series(model.predict(of_class[FEATURES]) != label, index=of_class.index)
    return wrong.groupby(of_class["patient"]).mean().mean()
