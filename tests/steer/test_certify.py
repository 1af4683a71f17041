"""Guarantees: which route is planned, what is tested, what is refused, and why.

That guarantees hold is simulated in test_certificates_hold.py.
"""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.steer.populations import along, normal, plan_of, three_classes

from margrave import Confusion, Preference
from margrave.confusion import Objective
from margrave.steer import Dialog, GuaranteeError
from margrave.steer._certify import name_request, set_decision
from margrave.steer._order_statistic import largest_allowed_count, one_sided_bounds, p_value
from margrave.steer._plan import (
    N_DRAWS,
    Draws,
    Outcomes,
    Plan,
    TuningScores,
    certify_draws,
    make_plan,
    simulate,
)
from margrave.steer._thresholds import (
    Offsets,
    Threshold,
    best_decision,
    best_rejecting_decision,
    default_decision,
)

DELTA = 0.1


@dataclass(frozen=True)
class Normals:
    """Two classes with normal scores, all different: a dialog takes equal ones for copies."""

    k = 2
    gap: float = 2.0
    share: float = 0.4

    def draw(self, rng, n):
        codes = (rng.random(n) < self.share).astype(np.intp)
        return rng.normal(size=n) + self.gap * codes, codes


class TestSides:
    matrix = Confusion([[60, 0], [0, 40]], classes=["ham", "spam"])

    @pytest.mark.parametrize(
        ("text", "of", "answer"),
        [
            ("fp <= 5%", ["ham"], 1),
            ("fp >= 5%", ["ham"], 0),
            ("fn <= 5%", ["spam"], 0),
            ("fp(ham) <= 5%", ["spam"], 0),
            ("fn(ham) <= 5%", ["ham"], 1),
            ("recall >= 90%", ["spam"], 0),
            ("recall(ham) >= 90%", ["ham"], 1),
            ("recall <= 90%", ["spam"], 1),
            ("correct(ham) >= 90%", ["ham"], 1),
            ("correct(spam) >= 90%", ["spam"], 0),
            ("errors(ham -> spam) <= 5%", ["ham"], 1),
            ("errors(spam -> ham) <= 5%", ["spam"], 0),
            ("alarms <= 30%", ["ham", "spam"], 1),
            ("alarms >= 30%", ["ham", "spam"], 0),
            ("alarms(ham) <= 70%", ["ham", "spam"], 0),
        ],
    )
    def test_shares_of_whole_classes_that_get_one_answer(self, text, of, answer):
        ((bound, rows, limited),) = one_sided_bounds(Preference(text), self.matrix)
        assert str(bound) == str(Preference(text))
        assert [label for label, there in zip("ab", rows, strict=True) if there] == [
            "ab"[self.matrix.classes.index(label)] for label in of
        ]
        assert limited == answer

    @pytest.mark.parametrize(
        "text",
        [
            "precision >= 90%",
            "precision(ham) >= 90%",
            "accuracy >= 90%",
            "correct >= 90%",
            "errors <= 10%",
            "rejected <= 10%",
            "rejected(ham) <= 10%",
            "fp <= 5%, rejected <= 10%",
            "fp <= 5%, precision >= 90%",
            "accuracy >= 90%, fn <= 5%",
        ],
    )
    def test_others_have_no_order_statistic(self, text):
        assert one_sided_bounds(Preference(text), self.matrix) == []

    def test_several_are_all_there(self):
        found = one_sided_bounds(Preference("fp <= 5%, recall >= 90%, alarms <= 50%"), self.matrix)
        assert [answer for *_, answer in found] == [1, 0, 1]

    @pytest.mark.parametrize("text", ["fp <= 5%", "fp <= 3", "fp <= 30%, alarms <= 60%"])
    def test_they_need_no_path(self, text):
        assert plan_of(text, Normals()).path == ()

    @pytest.mark.parametrize("text", ["precision >= 80%", "accuracy >= 70%"])
    def test_others_do(self, text):
        assert plan_of(text, Normals()).path

    def test_three_classes_do(self):
        assert plan_of("fn(1) <= 30%", three_classes(), n_tune=30).path


class TestTheThreshold:
    """The order statistic, against what it allows on the samples themselves."""

    @pytest.mark.parametrize("world", [Normals(), normal(step=0.75)], ids=["no ties", "ties"])
    @pytest.mark.parametrize(
        ("text", "of", "answer", "share"),
        [("fp <= 10%", 0, 1, 0.1), ("fn <= 20%", 1, 0, 0.2), ("recall >= 70%", 1, 0, 0.3)],
    )
    def test_as_many_are_beyond_it_as_are_allowed_and_no_threshold_goes_farther(
        self, world, text, of, answer, share
    ):
        scores, codes = world.draw(np.random.default_rng(5), 400)
        tuned = Threshold(-50.0, -50.0) if answer == 1 else Threshold(50.0, 50.0)
        plan = Plan(Preference(text), (0, 1), 1, tuned)
        threshold = set_decision(plan, scores, codes, DELTA).decision
        assert not threshold.rejects
        found = set_decision(plan, scores, codes, DELTA)
        known = scores[found.used & (codes == of)]
        allowed = largest_allowed_count(len(known), share, DELTA)
        assert allowed == largest_allowed_count((codes == of).sum(), share, DELTA)
        assert found.used[codes != of].all()
        wrong = (threshold.predict(known) == answer).sum()
        assert wrong <= allowed
        if isinstance(world, Normals):
            assert wrong == allowed
        # The next threshold in the direction of more such answers has too many.
        if answer == 1:
            farther = np.nextafter(known[known <= threshold.high].max(), -np.inf)
            assert (known > farther).sum() > allowed
        else:
            farther = known[known > threshold.low].min()
            assert (known <= farther).sum() > allowed

    def test_alarms_are_a_share_of_all_samples(self):
        scores, codes = Normals().draw(np.random.default_rng(6), 400)
        plan = Plan(Preference("alarms <= 30%"), (0, 1), 1, Threshold(-50.0, -50.0))
        found = set_decision(plan, scores, codes, DELTA)
        above = scores[found.used] > found.decision.high
        assert above.sum() == largest_allowed_count(400, 0.3, DELTA)

    def test_two_bounds_take_half_of_delta_each(self):
        world = Normals(gap=6.0)
        scores, codes = world.draw(np.random.default_rng(7), 400)
        plan = plan_of("fp <= 10%, fn <= 10%", world, tuned=Threshold(3.0, 3.0))
        found = set_decision(plan, scores, codes, DELTA)
        assert found.delta == DELTA / 2
        negatives, positives = scores[codes == 0], scores[codes == 1]
        threshold = found.decision.high
        assert (negatives > threshold).sum() <= largest_allowed_count(
            len(negatives), 0.1, DELTA / 2
        )
        assert (positives <= threshold).sum() <= largest_allowed_count(
            len(positives), 0.1, DELTA / 2
        )

    @pytest.mark.parametrize(
        "text",
        [
            "fp <= 10%, fn <= 10%",
            "fp <= 10%, then fewest errors",
            "fn <= 10%, then lowest cost of 3 fp + fn",
            "fp <= 10%, then fewest fp",  # the lowest one predicts everything negative
        ],
    )
    def test_an_allowed_threshold_stays_unless_the_goal_wants_another(self, text):
        world = Normals(gap=10.0)
        scores, codes = world.draw(np.random.default_rng(7), 400)
        plan = Plan(Preference(text), (0, 1), 1, Threshold(5.125, 5.125))
        assert set_decision(plan, scores, codes, DELTA).decision == Threshold(5.125, 5.125)

    @pytest.mark.parametrize("tuned", [-50.0, 0.0, 5.125, 50.0])
    @pytest.mark.parametrize(
        ("text", "limited"),
        [
            ("fp <= 10%", 0),
            ("fn <= 10%", 1),
            ("recall(0) >= 90%", 0),
            ("fp <= 10%, fn <= 60%, then fewest fn", 0),
        ],
    )
    def test_the_whole_allowance_is_used(self, text, limited, tuned):
        """No other threshold with as many limited errors makes fewer of the other ones."""
        scores, codes = Normals().draw(np.random.default_rng(7), 400)
        plan = Plan(Preference(text), (0, 1), 1, Threshold(tuned, tuned))
        found = set_decision(plan, scores, codes, DELTA)
        wrong = (scores > found.decision.high) != codes
        of_class = found.used & (codes == limited)
        part = DELTA / plan.n_parts
        assert wrong[of_class].sum() == largest_allowed_count(int(of_class.sum()), 0.1, part)

    def test_the_whole_allowance_of_a_limit_on_all_samples_is_used(self):
        scores, codes = Normals().draw(np.random.default_rng(7), 400)
        plan = Plan(Preference("alarms <= 20%"), (0, 1), 1, Threshold(3.0, 3.0))
        found = set_decision(plan, scores, codes, DELTA)
        alarms = scores[found.used] > found.decision.high
        assert alarms.sum() == largest_allowed_count(len(alarms), 0.2, DELTA)

    def test_a_bound_that_nothing_can_break_takes_no_room(self):
        """'fp <= 100%' says nothing, so the other bound may go as far as it allows alone."""
        scores, codes = Normals().draw(np.random.default_rng(8), 400)
        both, alone = (
            set_decision(
                Plan(Preference(text), (0, 1), 1, Threshold(-50.0, -50.0)), scores, codes, DELTA
            )
            for text in ("fp <= 100%, fn <= 1.5%", "fn <= 1.5%")
        )
        assert both.decision == alone.decision


class TestTheSamplesUsed:
    """More samples of a class help only if they allow more errors; else fewer are used."""

    def set_on(self, text, n_ham, n_spam, seed=0):
        rng = np.random.default_rng(seed)
        scores = np.concatenate([rng.normal(size=n_ham), rng.normal(2.0, size=n_spam)])
        codes = np.repeat([0, 1], [n_ham, n_spam])
        plan = Plan(Preference(text), (0, 1), 1, Threshold(-50.0, -50.0))
        return plan, scores, codes

    @pytest.mark.parametrize(("n", "used"), [(59, 59), (92, 59), (93, 93), (130, 124)])
    def test_as_many_as_a_step_needs(self, n, used):
        found = set_decision(*(case := self.set_on("fp <= 5%", n, 40)), 0.05)
        assert found.used[case[2] == 0].sum() == used
        assert found.used[case[2] == 1].all()

    def test_any_order_of_the_rows_gives_the_same(self):
        plan, scores, codes = self.set_on("fp <= 5%", 120, 40)
        found = set_decision(plan, scores, codes, 0.05)
        order = np.random.default_rng(1).permutation(len(codes))
        again = set_decision(plan, scores[order], codes[order], 0.05)
        assert again.decision == found.decision
        assert (again.used == found.used[order]).all()

    @pytest.mark.parametrize("scale", [1e-8, 1e-300, 1e9])
    def test_nor_do_units_of_the_scores_matter(self, scale):
        plan, scores, codes = self.set_on("fp <= 5%", 120, 40)
        plan, scores = replace(plan, decision=Threshold(-50 * scale, -50 * scale)), scores * scale
        decisions, names = set(), set()
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(codes))
            decisions.add(set_decision(plan, scores[order], codes[order], 0.05).decision)
            names.add(name_request(plan, scores[order], codes[order], 0.95))
        assert len(decisions) == len(names) == 1
        assert name_request(plan, np.append(scores[:-1], 0.0), codes, 0.95) not in names

    def test_a_negative_zero_is_a_zero(self):
        plan, scores, codes = self.set_on("fp <= 5%", 120, 40)
        names = {name_request(plan, np.append(scores[:-1], z), codes, 0.95) for z in (0.0, -0.0)}
        assert len(names) == 1

    def test_they_do_not_depend_on_the_size_of_the_scores(self):
        """The unused ones have any rank: on average that of all samples."""
        ranks = []
        for seed in range(60):
            plan, scores, codes = self.set_on("fp <= 5%", 90, 30, seed)
            unused = ~set_decision(plan, scores, codes, 0.05).used[:90]
            ranks.append(np.argsort(np.argsort(scores[:90]))[unused].mean())
        assert np.mean(ranks) == pytest.approx(44.5, abs=2)

    @pytest.mark.parametrize(
        "text", ["fp <= 5%, alarms <= 60%", "fp <= 9%, rejected <= 90%", "fp <= 9%, fp(0) >= 1%"]
    )
    def test_all_of_a_class_that_two_bounds_are_about(self, text):
        plan, scores, codes = self.set_on(text, 120, 120)
        rows = {row for side in plan.sides for row in np.flatnonzero(side.rows)}
        used = set_decision(plan, scores, codes, 0.05).used
        shared = [row for row in rows if sum(bool(side.rows[row]) for side in plan.sides) > 1]
        assert used[np.isin(codes, shared)].all()

    def test_both_classes_of_two_limits(self):
        plan, scores, codes = self.set_on("fp <= 40%, fn <= 40%", 101, 77)
        used = set_decision(plan, scores, codes, 0.05).used
        for c in (0, 1):
            n, n_used = (codes == c).sum(), used[codes == c].sum()
            allowed = largest_allowed_count(n, 0.4, 0.025)
            assert largest_allowed_count(n_used, 0.4, 0.025) == allowed
            assert largest_allowed_count(n_used - 1, 0.4, 0.025) < allowed


class TestBands:
    """Rejection by order statistics: against the counts on the samples themselves."""

    def plan(self, text, low, high):
        return Plan(Preference(text), (0, 1), 1, Threshold(low, high))

    @pytest.mark.parametrize("width", [0.0, 0.8, 80.0])
    @pytest.mark.parametrize("seed", range(5))
    def test_two_limits_set_the_width_of_a_band_around_a_fixed_centre(self, width, seed):
        """Else the two thresholds could be chosen together so that too few are rejected."""
        text = "fp <= 12%, fn <= 20%, rejected <= 45%"
        plan = self.plan(text, 1.1 - width / 2, 1.1 + width / 2)
        scores, codes = Normals().draw(np.random.default_rng(seed), 600)
        band = set_decision(plan, scores, codes, DELTA).decision
        assert band.low + band.high == pytest.approx(2.2)
        counts = plan.matrix(band.predict(scores), codes).counts
        most_fp, most_fn, most_rejected = (
            largest_allowed_count(n, limit, DELTA / 2)
            for n, limit in zip((*counts.sum(axis=1), 600), (0.12, 0.2, 0.45), strict=True)
        )
        n_rejected = counts[:, 2].sum()
        assert counts[0, 1] <= most_fp
        assert counts[1, 0] <= most_fn
        if width == 0:  # as narrow as the limits on errors allow
            assert counts[0, 1] == most_fp or counts[1, 0] == most_fn
            assert n_rejected < most_rejected
        elif width == 80:  # as wide as the limit on rejected samples allows
            assert n_rejected == most_rejected
        else:
            assert band.high - band.low >= 0.8 - 1e-9

    def test_none_is_rejected_where_that_is_not_needed(self):
        world = Normals(gap=9.0)
        plan = plan_of("fp <= 10%, fn <= 10%, rejected <= 20%", world)
        scores, codes = world.draw(np.random.default_rng(0), 400)
        band = set_decision(plan, scores, codes, DELTA).decision
        assert (band.predict(scores) < 0).sum() == 0

    def test_the_centre_stays_where_it_was_tuned_if_a_single_threshold_is_enough(self):
        text, tuned = "fp <= 10%, fn <= 10%, rejected <= 20%", Threshold(4.4, 4.6)
        plan = plan_of(text, Normals(gap=9.0), tuned=tuned)
        assert plan.route == "order statistics"
        assert (plan.decision.low, plan.decision.high) == pytest.approx((4.4, 4.6))

    def test_where_no_rejection_can_be_certified_none_is_rejected(self):
        scores, codes = Normals().draw(np.random.default_rng(0), 240)
        plan = self.plan("fp <= 30%, fn <= 30%, rejected <= 1%", 0.9, 1.1)
        assert not set_decision(plan, scores, codes, DELTA).decision.rejects

    def test_limits_that_cannot_be_certified_are_planned_and_refused(self):
        world = Normals()
        plan = plan_of("fp <= 2%, fn <= 2%, rejected <= 60%", world, n_tune=60)
        with pytest.raises(GuaranteeError):
            set_decision(replace(plan, path=()), *world.draw(np.random.default_rng(0), 60), DELTA)

    def test_a_band_that_rejects_too_many_is_refused(self):
        world = Normals(gap=1.0)
        plan = plan_of("fp <= 5%, fn <= 5%, rejected <= 20%", world)
        with pytest.raises(GuaranteeError):
            set_decision(plan, *world.draw(np.random.default_rng(0), 400), DELTA)

    @pytest.mark.parametrize(("limit", "rejects"), [(40, True), (5, False)])
    def test_with_one_limit_the_other_threshold_is_fixed_or_nothing_is_rejected(
        self, limit, rejects
    ):
        scores, codes = Normals().draw(np.random.default_rng(0), 400)
        goal = "then fewest errors"
        fp = set_decision(
            self.plan(f"fp <= 10%, rejected <= {limit}%, {goal}", 0.5, 0.6), scores, codes, DELTA
        ).decision
        assert fp.rejects == rejects
        assert fp.low == (0.5 if rejects else fp.high)
        fn = set_decision(
            self.plan(f"fn <= 10%, rejected <= {limit}%, {goal}", 1.4, 1.5), scores, codes, DELTA
        ).decision
        assert fn.rejects == rejects
        assert fn.high == (1.5 if rejects else fn.low)

    def test_bounds_on_the_same_side_do_not_share_the_error_probability(self):
        plan = Plan(Preference("fp <= 10%, alarms <= 45%"), (0, 1), 1, Threshold(-50.0, -50.0))
        scores, codes = Normals().draw(np.random.default_rng(0), 400)
        assert set_decision(plan, scores, codes, DELTA).delta == DELTA


@pytest.mark.parametrize(
    "plan",
    [
        Plan(Preference("fp <= 15%"), (0, 1), 1, Threshold(0.5, 0.5)),
        Plan(Preference("fp <= 20%, fn <= 20%"), (0, 1), 1, Threshold(1.0, 1.0)),
        Plan(Preference("fp <= 15%, rejected <= 30%"), (0, 1), 1, Threshold(0.4, 0.5)),
        plan_of("fp <= 12%, fn <= 12%, rejected <= 45%", Normals()),
        along("precision >= 70%", np.linspace(2.5, 0, 12)),
        along("precision >= 75%", (2.0, 0.8, 1.9)),
    ],
    ids=lambda plan: str(plan.preference),
)
def test_many_sets_at_once_are_certified_as_each_alone(plan):
    rng = np.random.default_rng(0)
    scores, codes = Normals().draw(rng, 80)
    counts = np.zeros((15, 80))
    for c in (0, 1):
        at = np.flatnonzero(codes == c)
        counts[:, at] = rng.multinomial(60, np.full(len(at), 1 / len(at)), 15)
    found = certify_draws(plan, Draws(scores, codes, counts), DELTA)
    assert found.certified.any()
    for i, times in enumerate(counts.astype(int)):
        at = rng.permutation(np.repeat(np.arange(80), times))
        alone = certify_draws(plan, Draws.of(scores[at], codes[at]), DELTA)
        assert len(alone.decisions) == 1
        assert alone.certified[0] == found.certified[i]
        assert alone.n_tested[0] == found.n_tested[i]
        if found.certified[i]:
            assert alone.decisions[0] == found.decisions[i]
            expected = plan.matrix(alone.decisions[0].predict(scores[at]), codes[at]).counts
            assert found.matrices[i].tolist() == alone.matrices[0].tolist() == expected.tolist()


class TestThePath:
    plan = plan_of("precision >= 80%", Normals(), n_tune=60)

    def test_each_decision_is_better_than_all_before_it_and_less_safe_by_the_tuning_samples(self):
        """One that is not better would never be certified, and could only end the path."""
        held, codes = Normals().draw(np.random.default_rng(0), 60)
        missed = [int((one.predict(held) < codes).sum()) for one in self.plan.path]
        errors = [int((one.predict(held) != codes).sum()) for one in self.plan.path]
        values = [*zip(missed, errors, strict=True)]
        assert values == sorted(set(values), reverse=True)
        risks = []
        for one in self.plan.path:
            right, found = (codes[held > one.high] == 1).sum() * 5, (held > one.high).sum() * 5
            risks.append(float(p_value(right, found, 0.8, at_most=False)))
        assert risks == sorted(risks)

    @pytest.mark.parametrize("text", ["precision >= 80%", "errors <= 12%, rejected <= 50%"])
    def test_the_first_is_as_safe_as_any_by_the_tuning_samples(self, text):
        """The first failure uses up the samples, so no decision may be much safer."""
        wanted, world = Preference(text), Normals()
        held, codes = world.draw(np.random.default_rng(0), 200)
        objective = Objective(wanted, codes, (0, 1))
        sizes = 2 * np.bincount(codes)
        first = make_plan(wanted, default_decision(2), held, objective, sizes, DELTA).path[0]

        def risk(decision):
            matrix = 2 * objective.matrix(decision.predict(held)).counts
            worst = 0.0
            for bound in wanted.bounds:
                cells = bound.cells(objective.matrix(codes))
                amount, base = (matrix[mask].sum() for mask in cells)
                worst = max(worst, p_value(amount, base, float(bound.limit), bound.at_most))
            return worst

        some = np.quantile(held, np.linspace(0.05, 0.95, 31))
        widths = len(some) if wanted.allows_rejecting else 1
        safest = min(
            risk(Threshold(low, high))
            for at, low in enumerate(some)
            for high in some[at : at + widths]
        )
        assert risk(first) <= 10 * safest

    def test_it_ends_at_the_first_failure_and_the_last_that_passed_is_kept(self):
        world = Normals()
        plan = along("precision >= 70%", (2.0, 1.75, -3.0, 1.5))
        scores, codes = world.draw(np.random.default_rng(0), 500)
        found = set_decision(plan, scores, codes, DELTA)
        assert found.decision == Threshold(1.75, 1.75)  # 1.5 is behind one that failed
        assert found.n_tested == 3
        assert (found.route, found.delta) == ("tested path", DELTA)

    @pytest.mark.parametrize(
        "text",
        [
            "precision >= 80%",
            "fp <= 12%, fn <= 12%, rejected <= 60%",
            "fp <= 12%, rejected <= 60%",
        ],
    )
    def test_the_class_sizes_do_not_matter_if_a_bound_counts_classes_together(self, text):
        """The class of each sample is then a part of what is tested."""
        held, codes = Normals().draw(np.random.default_rng(0), 200)
        objective = Objective(wanted := Preference(text), codes, (0, 1))
        plans = {
            (plan.path, plan.decision)
            for sizes in ((250, 50), (150, 150), (50, 250))
            for plan in [
                make_plan(wanted, Threshold(0.5, 1.5), held, objective, np.array(sizes), DELTA)
            ]
        }
        assert len(plans) == 1

    def test_it_does_not_depend_on_the_certify_samples(self):
        again = plan_of("precision >= 80%", Normals(), n_tune=60)
        assert again.path == self.plan.path

    def test_another_path_is_another_request(self):
        """Also if its decisions are equal on the tuning samples, or reject by another threshold."""
        scores, codes = Normals().draw(np.random.default_rng(0), 300)
        text = "recall >= 60%, rejected <= 30%"
        plans = [
            along("precision >= 70%", [2.0, 1.75]),
            along("precision >= 70%", [2.0, 1.751]),
            along("precision >= 70%", [2.0]),
            *(Plan(Preference(text), (0, 1), 1, Threshold(low, 2.0)) for low in (0.5, 0.6)),
        ]
        assert len({name_request(plan, scores, codes, 0.9) for plan in plans}) == len(plans)

    def test_every_bound_has_to_pass(self):
        """Precision alone passes there; with a recall that does not, nothing may."""
        scores, codes = Normals().draw(np.random.default_rng(0), 500)
        one = along("precision >= 70%", [2.5])
        assert set_decision(one, scores, codes, DELTA).decision == Threshold(2.5, 2.5)
        with pytest.raises(GuaranteeError):
            set_decision(along("precision >= 70%, recall >= 90%", [2.5]), scores, codes, DELTA)

    def test_that_none_is_rejected_is_not_left_to_chance(self):
        """No spam of these samples is in the band; spam of others will be."""
        scores = np.concatenate([np.linspace(-3, 0.9, 200), np.linspace(2, 4, 200)])
        codes = np.repeat([0, 1], 200)
        wanted = Preference("fp <= 20%, rejected(0) <= 50%, rejected(1) <= 0")
        plan = Plan(wanted, (0, 1), 1, default_decision(2), (Threshold(0.0, 1.5),))
        with pytest.raises(GuaranteeError):
            set_decision(plan, scores, codes, DELTA)

    def test_none_rejected_said_aloud_is_none_rejected_implied(self):
        world = Normals()
        scores, codes = world.draw(np.random.default_rng(0), 400)
        silent = set_decision(plan_of("fp <= 20%", world), scores, codes, DELTA).decision
        aloud = set_decision(
            plan_of("fp <= 20%, rejected <= 0", world), scores, codes, DELTA
        ).decision
        assert not silent.rejects
        assert not aloud.rejects

    @pytest.mark.core
    def test_of_three_classes_it_begins_where_the_limit_is_hardly_used(self):
        scores, codes = three_classes().draw(np.random.default_rng(0), 150)
        objective = Objective(Preference("fn(2) <= 20%"), codes, (0, 1, 2))
        tuned, sizes = best_decision(objective, scores), np.bincount(codes)
        path = make_plan(objective.preference, tuned, scores, objective, sizes, DELTA).path
        missed = [objective.matrix(one.predict(scores)).counts[2, :2].sum() for one in path]
        assert len(path) >= 4
        assert missed[0] == 0
        assert missed[-1] > sizes[2] / 10

    def test_three_classes_get_offsets(self):
        """With a strict limit on rejecting, the safest rejects none, and the next ones err less."""
        world = three_classes()
        plan = plan_of("errors <= 60%, rejected <= 10%", world, n_tune=60)
        assert all(isinstance(one, Offsets) for one in plan.path)
        assert [one.rejects for one in plan.path[:2]] == [False, True]
        held, codes = world.draw(np.random.default_rng(0), 60)
        predictions = [one.predict(held) for one in plan.path]
        outcomes = [(((p != codes) & (p != -1)).sum(), (p == -1).sum()) for p in predictions]
        assert outcomes == sorted(set(outcomes), reverse=True)
        assert not any(one.rejects for one in plan_of("errors <= 60%", world, n_tune=60).path)


class First(ClassifierMixin, BaseEstimator):
    """A trained model whose decision is the first column."""

    classes_ = np.array(["ham", "spam"])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0] - 1

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def mail(n, seed=0, gap=2.0):
    scores, codes = Normals(gap).draw(np.random.default_rng(seed), n)
    return scores[:, None], First.classes_[codes]


def mails(n_ham, n_spam, gap=2.0):
    rng = np.random.default_rng(n_ham + n_spam)
    scores = np.concatenate([rng.normal(size=n_ham), rng.normal(gap, size=n_spam)])
    return scores[:, None], np.repeat(First.classes_, [n_ham, n_spam])


def asked(text, gap=2.0):
    dialog = Dialog(First(), *mail(300, gap=gap))
    dialog.prefer(text, strategies=["move", "reject"])
    return dialog


def refused(dialog, samples, *named, **candidates):
    """A guarantee is refused, by an error that names all of these; returned."""
    with pytest.raises(GuaranteeError) as caught:
        dialog.accept(*samples, **candidates)
    for one in named:
        assert one in str(caught.value)
    return caught.value


class TestRefusals:
    def test_too_few_names_how_many_are_needed(self):
        dialog = asked("fp <= 1%")
        error = refused(dialog, mails(298, 50), "fp <= 1%", "0.95", "299", "ham", "298")
        assert not error.used_up
        assert dialog.accept(*mails(299, 50)).certificate_.guarantees[0].count == 0

    def test_of_the_other_class_and_at_another_confidence(self):
        dialog, samples = asked("recall >= 90%"), mails(99, 21)
        named = ["recall >= 90%", "0.9", "22", "spam", "21"]
        assert "0.95" not in str(refused(dialog, samples, *named, confidence=0.9))

    def test_of_all_samples(self):
        error = refused(asked("alarms <= 1%"), mails(50, 50), "alarms <= 1%", "0.95", "299", "100")
        assert "ham" not in str(error)
        assert "spam" not in str(error)

    @pytest.mark.parametrize("text", ["fp <= 0.1%", "fn <= 0.1%", "recall >= 99.9%"])
    @pytest.mark.parametrize("n", [40, 59])
    def test_what_they_are_said_to_support_is_supported(self, text, n):
        samples = mails(n, n)
        error = refused(asked(text), samples)
        (limit,) = re.findall(r"\d[\d.]*%", str(error).replace(text, ""))
        word, sign, _ = text.split()
        model = asked(f"{word} {sign} {limit}").accept(*samples)
        assert model.certificate_.guarantees[0].n == n

    def test_no_number_is_enough_for_none_at_all(self):
        error = refused(asked("fp <= 0"), mails(80, 80), "fp <= 0%")
        number, limit = re.findall(r"\d[\d.]*%?", str(error).replace("fp <= 0%", ""))
        assert number == "80"
        assert re.fullmatch(r"\d+\.\d\d%", limit)

    def test_a_pair_that_cannot_be_kept_together_is_refused_before_the_samples_are_used(self):
        dialog = asked("fp <= 6%, fn <= 6%")
        error = refused(dialog, mails(150, 150), "fp <= 6%", "fn <= 6%", "300")
        assert not error.used_up
        model = asked(error.fields["nearest"]).accept(*mails(150, 150))
        assert model.certificate_.preference == error.fields["nearest"]

    def test_a_pair_that_only_the_tuning_samples_support(self):
        """Only the certification set shows that the classes are nearer to each other there."""
        dialog = asked("fp <= 12%, fn <= 12%", gap=4.0)
        assert refused(dialog, mails(150, 150, gap=1.0), "fp <= 12%").used_up

    def test_a_pair_that_rejecting_makes_possible(self):
        dialog = asked("fp <= 12%, fn <= 12%, rejected <= 60%")
        certificate = dialog.accept(*mails(300, 300)).certificate_
        assert certificate.confusion.n_rejected > 0

    @pytest.mark.parametrize("text", ["precision >= 90%", "accuracy >= 95%"])
    def test_a_path_on_which_nothing_can_pass_uses_nothing_up(self, text):
        dialog, samples = asked(text), mail(60, seed=4)
        error = refused(dialog, samples, text, "0.95", "60")
        assert not error.used_up
        nearest = error.fields["nearest"]
        assert float(Preference(nearest).bounds[0].limit) < float(Preference(text).bounds[0].limit)
        dialog.prefer(nearest, strategies=["move"])
        assert dialog.accept(*samples).certificate_.number == 1

    def test_a_class_that_is_missing(self):
        X, y = mails(200, 1)
        assert not refused(asked("fp <= 5%"), (X[:-1], y[:-1]), "spam").used_up

    def test_nothing_to_guarantee(self):
        refused(Dialog(First(), *mail(300)), mails(99, 99), "prefer(")

    def test_nothing_set_aside(self):
        refused(asked("fp <= 5%"), (), "X_certify", "y_certify")

    @pytest.mark.parametrize("confidence", [0, 1, 1.5, True, "0.9", None])
    def test_what_is_no_confidence(self, confidence):
        match = rf"Dialog\.accept.*\bconfidence\b.*{re.escape(repr(confidence))}"
        with pytest.raises(ValueError, match=match):
            asked("fp <= 5%").accept(*mails(99, 99), confidence=confidence)


def test_neighbouring_scores_can_be_told_apart():
    low, high = 1.0, np.nextafter(1.0, 2.0)
    scores, codes = np.repeat([low, high], 100), np.repeat([0, 1], 100)
    plan = Plan(Preference("fp <= 10%, fn <= 10%"), (0, 1), 1, Threshold(0.0, 0.0))
    found = certify_draws(plan, Draws.of(scores, codes), DELTA)
    assert len(found.decisions) == 1
    assert found.certified[0]
    assert found.decisions[0] == Threshold(low, low)


def test_outcomes_without_a_certificate_are_worth_nothing():
    matrices = np.array([[[6, 2, 2], [1, 9, 0]], [[10, 0, 0], [0, 10, 0]]], dtype=float)
    first = Outcomes(np.array([True, False]), matrices, [], np.ones(2, dtype=int))
    assert first.recall == pytest.approx((0.6 + 0.9) / 2 / 2)

    def value(text):
        return first.value(Plan(Preference(text), (0, 1), 1, Threshold(0.0, 0.0)))

    assert value("rejected <= 9%") == pytest.approx(17 / 20 / 2)  # a rejected sample is no error
    assert value("fp <= 20%") == pytest.approx(9 / 10 / 2)
    assert value("fn <= 20%") == pytest.approx(8 / 10 / 2)
    cost = "fp <= 20%, then lowest cost of fp + 3 fn + rejected"
    assert value(cost) == pytest.approx((1 - (2 + 2 + 3) / (10 + 30)) / 2)


def test_of_a_large_tuning_set_some_samples_are_drawn_as_often_as_they_count():
    n = 15_000
    scores, codes = np.arange(float(n)), np.arange(n) % 2
    counts = np.where(np.arange(n) < n // 2, 3, 1)
    wanted = Preference("fp <= 10%")
    drawn = TuningScores.of(scores, Objective(wanted, codes, (0, 1), 1, counts))
    assert len(drawn.scores) == len(drawn.codes) == len(drawn.counts) < n
    assert (drawn.counts == 1).all()
    assert (drawn.codes == drawn.scores % 2).all()
    assert (drawn.scores < n // 2).mean() == pytest.approx(0.75, abs=0.02)
    few = TuningScores.of(scores[:50], Objective(wanted, codes[:50], (0, 1), 1, counts[:50]))
    assert few.scores.tolist() == scores[:50].tolist()
    assert few.counts.tolist() == counts[:50].tolist()


@pytest.mark.core
def test_a_simulation_uses_as_many_samples_of_each_class_as_certification_does():
    """Fewer than there are where more would only make the limit stricter, in their proportions."""
    scores, codes = Normals().draw(np.random.default_rng(0), 300)
    for text in ("fp <= 5%", "alarms <= 20%", "fp <= 20%, fn <= 20%"):
        wanted = Preference(text)
        tuning = TuningScores.of(scores, Objective(wanted, codes, (0, 1), 1))
        plan = Plan(wanted, (0, 1), 1, Threshold(3.0, 3.0))
        sizes = np.array([130, 60])
        expected = sizes.copy()
        for rows, n in plan.limited_sizes(sizes, 0.05):
            expected[rows] = n
            if rows.sum() == 2:
                expected = np.array([n - round(n * 60 / 190), round(n * 60 / 190)])
        matrices = simulate(plan, tuning, sizes, 0.05).matrices
        assert len(matrices) == N_DRAWS
        assert (matrices.sum(axis=2) == expected).all()
        assert sizes.tolist() == [130, 60]


@pytest.mark.core
class TestPlannedBands:
    """The decision that order statistics with rejection start from, by the tuning set."""

    def plan(self, text):
        """The tuned decision, the planned one, and how often that rejects."""
        scores, codes = Normals().draw(np.random.default_rng(0), 500)
        objective = Objective(Preference(text), codes, (0, 1), 1)
        tuned, sizes = best_rejecting_decision(objective, scores), np.bincount(codes)
        plan = make_plan(objective.preference, tuned, scores, objective, sizes, DELTA)
        assert plan.path == ()
        found = simulate(plan, TuningScores.of(scores, objective), sizes, DELTA)
        return tuned, plan.decision, np.mean([one.rejects for one in found.decisions])

    @pytest.mark.parametrize("text", ["fp <= 2%, rejected <= 40%"])
    def test_one_that_rejects_too_many_is_narrowed_at_the_threshold_without_a_limit(self, text):
        tuned, planned, rejecting = self.plan(text)
        assert tuned.low < planned.low < planned.high == tuned.high
        assert rejecting >= 0.9
