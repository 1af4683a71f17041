"""The steering study: its splits, its statistics, its verdicts, and the command."""

import re

import numpy as np
import pytest
from experiments.steer import chance, data, guarantees, rivals, said, study
from experiments.steer.__main__ import main
from experiments.steer.asking import Tally, tally
from experiments.steer.chance import Drawn
from experiments.steer.guarantees import Case, Outcome
from experiments.steer.results import Results
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from margrave.steer import Dialog

MET, MISSED = "kept", "missed"  # the verdicts of a page, in bold


def bold(text):
    return re.findall(r"\*\*(.*?)\*\*", text)


@pytest.fixture(scope="module")
def parts():
    return data.parts("pima", 0)


@pytest.fixture(scope="module")
def dialog(parts):
    committee = [
        ("logistic", LogisticRegression(max_iter=2000)),
        ("bayes", GaussianNB()),
        ("margin", LinearSVC(C=1e-4)),
    ]
    return Dialog.from_data(
        parts.X_build, parts.y_build, committee=committee, certify=None, random_state=0
    )


class TestData:
    def test_parts_are_disjoint_and_of_the_promised_sizes(self):
        _, y = data.load("pima")
        positions = data.positions(y, seed=3)
        assert np.array_equal(np.sort(np.concatenate(positions)), np.arange(len(y)))
        assert [round(5 * len(each) / len(y)) for each in positions] == [3, 1, 1]
        shares = [y[each].mean() for each in positions]
        assert shares == pytest.approx([y.mean()] * 3, abs=0.01)

    def test_seeds_split_differently(self):
        _, y = data.load("pima")
        first, again, other = (data.positions(y, seed)[2] for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.array_equal(np.sort(first), np.sort(other))

    def test_data_sets_have_two_classes_and_enough_rows(self):
        titles = data.titles()
        assert {"breast_wisconsin", "pima"} <= set(titles)
        assert not {"iris", "sonar"} & set(titles)
        sizes = [len(data.load(title)[1]) for title in titles]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] >= data.LEAST


class TestChance:
    one = Drawn(n=60, allowed=2, m=40)

    def test_draws_of_one_count_are_beta_binomial(self):
        drawn = chance.sums([self.one], seed=0, draws=100_000)
        shares = np.bincount(drawn, minlength=41) / len(drawn)
        assert shares == pytest.approx(betabinom.pmf(np.arange(41), 40, 3, 58), abs=0.006)
        assert chance.p_value(5, drawn) == pytest.approx(betabinom.sf(4, 40, 3, 58), abs=0.006)

    def test_counts_add_up(self):
        drawn = chance.sums([self.one] * 30, seed=0)
        assert drawn.mean() == pytest.approx(30 * betabinom.mean(40, 3, 58), rel=0.02)
        assert drawn.var() == pytest.approx(30 * betabinom.var(40, 3, 58), rel=0.05)

    def test_a_p_value_is_never_0(self):
        drawn = chance.sums([self.one], seed=0, draws=99)
        assert chance.p_value(41, drawn) == 1 / 100
        assert chance.p_value(0, drawn) == 1

    def test_seen_broken_is_above_the_rate_not_at_it(self):
        """5 of 100 is not above 5 %; 29 % of 100 is 28.999... in floating point."""
        assert chance.most_within(100, 0.05) == 5
        assert chance.most_within(100, 0.29) == 29
        assert chance.broken_by_chance(self.one, 0.05) == pytest.approx(betabinom.sf(2, 40, 3, 58))

    @pytest.mark.full
    def test_order_statistics_make_beta_binomial_counts(self):
        """The study's cut on scores that are drawn alike, again and again."""
        rng = np.random.default_rng(0)
        counts = np.empty(4000)
        for i in range(len(counts)):
            certify, test = rng.normal(size=100), rng.normal(size=50)
            cut = rivals.certified_cut(certify, np.zeros(100, dtype=int), 0, 0.05)
            counts[i] = (test > cut).sum()
        assert counts.mean() == pytest.approx(betabinom.mean(50, 2, 99), rel=0.1)
        assert (counts > 2).mean() == pytest.approx(
            chance.broken_by_chance(Drawn(100, 1, 50), 0.05), abs=0.015
        )


class TestPromises:
    @pytest.mark.parametrize(
        ("n", "percents"),
        [(28, []), (29, [10]), (59, [5, 10]), (149, [2, 5, 10]), (299, [1, 2, 5, 10])],
    )
    def test_a_rate_needs_enough_samples(self, n, percents):
        """Ln δ / ln(1 − α): 29, 59, 149 and 299 at confidence 0.95."""
        found = guarantees.supported(np.zeros(n, dtype=int), (1, 2, 5, 10))
        assert found == [("fp", percent) for percent in percents]

    @pytest.mark.parametrize("wish", ["fp <= 10%", "fn <= 10%"])
    def test_rivals_are_cut_as_the_dialog_cuts(self, dialog, parts, wish):
        dialog._ledger.accounts.clear()
        dialog._ledger.accepted.clear()
        dialog.goto(0)
        dialog.prefer(wish, strategies=["move"])
        model = dialog.accept(parts.X_certify, parts.y_certify)
        scores = rivals.Voices.of(dialog, parts.X_certify).scores(model.scorer_)
        limited = guarantees.SIDES[wish[:2]]
        cut = rivals.certified_cut(scores, parts.y_certify, limited, 0.1)
        assert model.decision_.high == pytest.approx(cut, rel=1e-9)

    def test_cases_are_those_of_the_models_themselves(self, dialog, parts):
        test = rivals.Voices.of(dialog, parts.X_test)
        found = guarantees.cases(dialog, parts, test, (10,))
        assert [(case.side, case.percent) for case in found] == [("fp", 10), ("fn", 10)]
        for case, reply in zip(found, dialog.history[-2:], strict=True):
            limited = guarantees.SIDES[case.side]
            tuned = reply.model.predict(parts.X_test) == 1
            told = guarantees.outcome(tuned, parts.y_test, limited)
            assert case.by[rivals.TUNED] == told
            assert case.drawn.m + case.others == len(parts.y_test)
        accepted = dialog._ledger.accepted
        assert len(accepted) == 1  # the ledger is a new one for each promise
        model = accepted[0].model
        assert model.certificate_.guarantees[0].count <= found[1].drawn.allowed
        mine = guarantees.outcome(model.predict(parts.X_test) == 1, parts.y_test, 1)
        assert found[1].by[rivals.OURS] == mine

    def test_samples_that_are_too_few_are_refused(self):
        with pytest.raises(ValueError, match=r"\b20\b.*\b0\.1\b"):
            rivals.certified_cut(np.arange(20.0), np.zeros(20, dtype=int), 0, 0.1)


class TestRivals:
    def test_the_best_member_ranks_best_out_of_fold(self, dialog):
        material = dialog._data
        best = rivals.best_member(material)
        order = rivals.scorers(dialog)[rivals.MEMBER].score_raw(material.raw)
        assert np.array_equal(np.argsort(order), np.argsort(material.raw[:, best]))

    def test_stacking_sees_probabilities_and_decision_values(self, dialog):
        material = dialog._data
        heard = material.committee.gives_probabilities
        assert heard.tolist() == [True, True, False]
        columns = rivals._probabilities(material.raw, heard)
        assert columns[:, :2].min() >= 0
        assert columns[:, :2].max() <= 1
        assert np.array_equal(columns[:, 2], material.raw[:, 2])

    @pytest.mark.skipif(not rivals.HAS_MAPIE, reason="mapie is an extra")
    def test_mapie_finds_a_threshold_or_none(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 400)
        certify, test = (rng.normal(2.0 * (2 * y - 1)) for _ in range(2))
        found = rivals.mapie_answers(certify, y, test, 0, 0.05)
        assert set(found) == {rivals.MAPIE, rivals.SEQUENCE}
        for positive in found.values():
            assert positive[y == 0].mean() < 0.08
            assert positive[y == 1].mean() > 0.8
        few = np.r_[:10, 400:410]
        refused = rivals.mapie_answers(certify[few], y[few], test, 0, 0.05)
        assert refused[rivals.MAPIE] is None


@pytest.mark.full
def test_requests_are_tallied(dialog, parts):
    found = tally(dialog, parts, rivals.Voices.of(dialog, parts.X_test))
    assert found.asked == 6
    assert found.met == 6
    ours, member, start = found.errors
    assert min(ours, member, start) > 0
    assert (found + found).errors == (2 * ours, 2 * member, 2 * start)


def _results(ours, member, *, wrong=2, met=6, stacking=50, n_titles=3):
    """Runs in which rules miss so many of 100 samples, a little more on every other split."""
    runs = []
    for title in [f"set {i}" for i in range(n_titles)]:
        for split in range(2):
            missed = {rivals.OURS: ours + split, rivals.MEMBER: member}
            missed |= {rivals.STACKING: stacking, rivals.LOG_ODDS: 60, rivals.START: 60}
            by = {rule: Outcome(wrong, count) for rule, count in missed.items()}
            case = Case("fp", 5, Drawn(100, 1, 100), 100, {**by, rivals.TUNED: by[rivals.OURS]}, "")
            tallied = Tally(6, met, ours, 0, member, 0, 10, 0)
            runs.append(study.Run(title, split, "logistic", [case], tallied))
    plan = study.Plan(tuple(f"set {i}" for i in range(n_titles)), n_splits=2)
    return Results.of(plan, 0, reversed(runs))


class TestVerdicts:
    good, bad = _results(20, 40), _results(40, 20, wrong=9, met=5)

    @pytest.mark.parametrize(
        "of",
        [said.guarantees, said.cost, said.worse, said.met, said.errors],
        ids=lambda f: f.__name__,
    )
    def test_a_bar_is_kept_or_missed_by_the_numbers(self, of):
        assert bold(of(self.good)) == [MET]
        assert bold(of(self.bad)) == [MISSED]

    def test_the_price_has_to_beat_both(self):
        assert bold(said.cost(_results(20, 40, stacking=10))) == [MISSED]
        for rule, recall in ((rivals.OURS, "79.50 %"), (rivals.MEMBER, "60.00 %")):
            assert f"{rule} {recall}" in said.cost(self.good)

    def test_two_worse_sets_are_allowed(self):
        found = said.worse(_results(40, 20, n_titles=2))
        assert "2 of 2" in found
        assert "set 0, set 1" in found
        assert bold(found) == [MET]

    def test_counts_are_pooled(self):
        one = self.bad.pooled(5, rivals.OURS)
        assert (one.guarantees, one.wrong, one.m, one.broken) == (6, 54, 600, 1.0)
        assert one.p < 0.01 < self.good.pooled(5, rivals.OURS).p

    def test_what_is_worse_is_said(self):
        found = said.plainly(self.bad)
        below = [one for one in found if rivals.OURS in one and "set 0, set 1, set 2" in one]
        assert len(below) == 1
        assert rivals.MEMBER in below[0]
        total = self.bad.tally()
        assert total.cell > total.member_cell
        assert f"{total.cell} " in found[-1]
        assert not any("set" in one.split() for one in said.plainly(self.good))


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "steer.md").read_text()
    assert "experiments.steer --quick" in page
    assert len([word for word in bold(page) if word in (MET, MISSED)]) == 5
    assert "$" not in page
    assert "nan" not in page
    figures = re.findall(r"\]\((.*?\.png)\)", page)
    assert len(figures) == 2
    for figure in figures:
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
