"""The study of local selection against DESlib: tables, ties, findings and the command."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from experiments.select import (
    comparing,
    data,
    findings,
    fixture,
    meta_des,
    study,
    tables,
    ties,
    timing,
)
from experiments.select.__main__ import main
from experiments.select.comparing import METHODS, OUTSIDE, MethodCounts, Peer
from experiments.select.members import lookups
from experiments.select.meta_des import MetaCheck
from experiments.select.results import Results
from experiments.select.ties import BEST, CHOICE, NEAR, NOBODY, VOTES, Seen

VERSIONS = {"Python": "3.11.0", "DESlib": "0.3.7"}
MET, MISSED = "met", "missed"  # the verdicts of a page, in bold


def bold(text):
    return re.findall(r"\*\*(.*?)\*\*", text)


@pytest.fixture(autouse=True)
def absent(monkeypatch):
    """Run without the peer, whether or not it is installed."""
    monkeypatch.setenv("MARGRAVE_DESLIB", "nowhere/python")


@pytest.fixture(scope="module")
def pima():
    return data.make_tables("pima", 0)


class TestTables:
    def test_a_third_each(self, pima):
        assert pima.X_tune.shape == pima.X_query.shape == (256, 8)
        assert pima.parts_tune.shape == pima.parts_query.shape == (256, 11, 2)
        assert pima.predictions.shape == (256, 11)
        assert 0.6 < np.mean(pima.predictions == pima.y_query[:, None]) < 0.9

    def test_numbers_are_exact_in_few_bits(self, pima):
        assert np.array_equal(pima.X_tune, pima.X_tune.astype(np.float16))
        assert (pima.proba_tune.sum(axis=2) == 1).all()

    def test_parts_add_up_and_are_near(self):
        proba = np.random.default_rng(0).dirichlet(np.ones(5), size=(20, 3))
        parts = data.in_parts(proba)
        assert (parts.sum(axis=2) == data.PARTS).all()
        assert np.abs(parts / data.PARTS - proba).max() < 1 / data.PARTS
        assert data.in_parts(np.array([[1 / 3, 1 / 3, 1 / 3]])).tolist() == [[1366, 1365, 1365]]
        assert data.in_parts(np.array([[0.0, 1.0]])).tolist() == [[0, 4096]]

    def test_abalone_has_three_classes_and_numbers_only(self):
        X, y = data.load("abalone")
        assert X.shape == (4177, 7)
        assert np.bincount(y).tolist() == [1407, 1323, 1447]

    def test_every_class_is_drawn(self):
        drawn = data._bootstrap(np.array([0] * 20 + [1]), np.random.default_rng(0))
        assert 20 in drawn

    def test_first_rows(self, pima):
        few = pima.first(10)
        assert len(few.y_tune) == len(few.parts_query) == 10

    def test_members_look_up_their_probabilities(self, pima):
        members = lookups([(pima.X_tune, pima.proba_tune), (pima.X_query, pima.proba_query)])
        assert len(members) == 11
        back = np.asfortranarray(pima.X_query[::-1])
        assert np.array_equal(members[3].predict_proba(back), pima.proba_query[::-1, 3])
        assert np.array_equal(members[3].predict(back), pima.predictions[::-1, 3])
        assert members[3].fit(pima.X_tune, pima.y_tune) is members[3]
        with pytest.raises(KeyError):
            members[0].predict(pima.X_query + 1)

    def test_fixtures_are_read_as_they_were_written(self, pima, tmp_path):
        given = pima.first(20)
        predicted = {method: np.arange(20) % (i + 1) for i, method in enumerate(METHODS)}
        peer = Peer(predicted, *_neighbours(given), np.linspace(-1, 1, 21), np.array(0.5))
        packed = fixture.pack(given, peer)
        path = tmp_path / "kept.npz"
        np.savez_compressed(path, **{f"pima.{name}": array for name, array in packed.items()})
        (again, returned), *others = fixture.read(path).values()
        assert not others
        for name in ("X_tune", "y_tune", "X_query", "y_query", "parts_tune", "parts_query"):
            assert np.array_equal(getattr(again, name), getattr(given, name))
        for method in METHODS:
            assert np.array_equal(returned.predictions[method], predicted[method])
        for name in comparing.META_DES:
            assert np.array_equal(getattr(returned, name), getattr(peer, name))


class TestTies:
    def test_best_members_differ(self):
        competence = np.array([[0.9, 0.9, 0.1], [0.9, 0.9, 0.1], [0.9, 0.8, 0.9], [1, 0.5, 0.5]])
        answers = np.array([[0, 1, 1], [0, 0, 1], [2, 1, 2], [0, 1, 2]])
        assert ties.best_differ(competence, answers).tolist() == [True, False, False, False]
        nearly = competence - np.array([0, 1e-12, 0])
        assert ties.best_differ(nearly, answers).tolist() == [True, False, False, False]

    def test_equal_votes(self):
        answers = np.array([[0, 1, 1], [0, 1, 2], [0, 1, 1], [1, 1, 1]])
        weight = np.array([[2.0, 1, 1], [3, 1, 1], [1, 1, 1], [1, 0, 0]])
        assert ties.equal_votes(answers, weight).tolist() == [True, False, False, False]
        assert ties.equal_votes(answers, np.zeros((4, 3))).all()
        assert not ties.equal_votes(np.zeros((1, 2), dtype=int), np.ones((1, 2))).any()

    def test_neighbours_as_far(self):
        distance = np.array([[1.0, 2, 2], [1, 1, 2], [1, 2, 3]])
        assert ties.as_far(distance, in_order=False).tolist() == [True, False, False]
        assert ties.as_far(distance, in_order=True).tolist() == [True, True, False]

    def test_the_largest_in_any_order(self):
        values = np.array([0.5, 0.9, 0.5, 0.5, 0.1])
        found = set(ties.largest(values, range(5), 2))
        assert found == {(1, 0), (1, 2), (1, 3)}
        assert list(ties.largest(values, (1, 4), 1)) == [(1,)]
        assert list(ties.largest(values, (1, 4), 5)) == [(1, 4)]

    def test_choices_among_equals(self):
        """Six members: three are kept for accuracy, two of these for failing alone."""
        competence = np.array([[3, 2, 2, 1, 0, 0]]) / 3
        alone = np.zeros((1, 6))
        clear = np.array([[0, 0, 0, 1, 1, 1]])
        assert not ties.choices_differ(competence, alone, clear).any()
        # of 0, 1 and 1 any two may stay: 1 against 1 is open, and so is 0 against 1
        assert ties.choices_differ(competence, alone, np.array([[0, 1, 1, 1, 1, 1]])).all()
        # the first shares most faults, so the other two are taken, which agree
        faults = np.array([[5.0, 0, 0, 0, 0, 0]])
        assert not ties.choices_differ(competence, faults, np.array([[0, 1, 1, 1, 1, 1]])).any()
        # who is third in accuracy is open, but all of those say the same
        level = np.array([[3, 3, 2, 2, 2, 0]]) / 3
        faults = np.array([[0.0, 0, 5, 5, 5, 5]])
        assert not ties.choices_differ(level, faults, np.array([[0, 0, 1, 1, 1, 1]])).any()
        faults = np.array([[0.0, 5, 0, 5, 5, 5]])
        assert ties.choices_differ(level, faults, np.array([[0, 0, 0, 1, 1, 1]])).all()

    def test_double_faults(self):
        """One neighbour where all three are wrong, and one where two are."""
        right = np.array([[[False, False, False], [True, False, False]]])
        assert ties.double_faults(right).tolist() == [[2, 3, 3]]

    def test_each_method_has_its_own_reasons(self):
        answers = np.array([[0, 1, 1], [0, 0, 0]])
        seen = Seen(
            answers,
            np.zeros((2, 3)),
            np.ones((2, 3), dtype=bool),
            np.zeros((2, 3)),
            [np.array([[1.0, 1, 2]] * 2)],
        )
        expected = {
            "ola": {NOBODY, BEST},
            "rank": {NOBODY, BEST, NEAR},
            "knora-e": {NEAR},
            "knora-u": {NOBODY, VOTES},
            "knop": {NOBODY, VOTES},
            "des-knn": {CHOICE},
            "des-p": set(),
            "meta-des": {NEAR},
        }
        for method, names in expected.items():
            found = ties.reasons(method, seen)
            assert {name for name, open_ in found.items() if open_[0]} == names
            assert not any(open_[1] for open_ in found.values())
        moved = replace(seen, distances=[*seen.distances, np.array([[1.0, 2, 2]] * 2)])
        assert ties.reasons("knop", moved)[NEAR].tolist() == [True, False]


class TestComparing:
    def test_every_method_is_compared(self, pima):
        few = pima.first(60)
        answers = {method: comparing.ours(few, method)[0] for method in METHODS}
        answers["ola"] = 1 - answers["ola"]
        found = comparing.compared(few, answers)
        assert tuple(found) == METHODS
        assert all(one.same == 1 for method, one in found.items() if method != "ola")
        ola = found["ola"]
        assert ola.same == 0
        assert ola.ours + ola.theirs == ola.n == 60
        assert ola.apart[OUTSIDE] == 60 - ola.ties.total()

    def test_counts_by_the_first_reason(self):
        why = {
            NEAR: np.array([True, True, False, False]),
            NOBODY: np.array([False, True, False, False]),
        }
        mine, peer = np.array([0, 0, 0, 0]), np.array([1, 0, 1, 0])
        found = comparing.counted(mine, peer, why, np.array([0, 0, 1, 1]))
        assert found.ties == {NEAR: 1, NOBODY: 1}
        assert found.apart == {NEAR: 1, OUTSIDE: 1}
        assert (found.ours, found.theirs) == (2, 2)
        assert (found.tied, found.same, found.same_outside) == (0.5, 0.5, 0.5)
        twice = found + found
        assert (twice.n, twice.apart[OUTSIDE], twice.same) == (8, 2, 0.5)
        assert comparing.counted(mine, None, why, mine).apart == Counter()

    def test_references(self, pima):
        found = comparing.references(pima)
        right = pima.predictions == pima.y_query[:, None]
        votes = (pima.predictions.sum(axis=1) > 5).astype(int)
        assert found[comparing.VOTE] == np.sum(votes == pima.y_query)
        assert found[comparing.ORACLE] == right.any(axis=1).sum()
        assert found[comparing.SINGLE] in right.sum(axis=0)

    def test_the_peer_is_looked_for(self, monkeypatch, tmp_path):
        assert comparing.peer_python() is None
        broken = tmp_path / "python"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
        monkeypatch.setenv("MARGRAVE_DESLIB", str(broken))
        assert comparing.peer_python() is None
        broken.write_text('#!/bin/sh\necho \'{"DESlib": "0.3.7"}\'\n')
        assert comparing.peer_python() == broken
        assert comparing.run_peer(broken, "versions") == {"DESlib": "0.3.7"}

    def test_no_fixture_without_the_peer(self, capsys):
        assert fixture.main() == 1
        assert "DESlib" in capsys.readouterr().err


def _neighbours(tables):
    """The neighbours that Margrave fits META-DES on."""
    return meta_des.find_neighbours(tables, comparing.fit(tables, "meta-des"))


def _peer(tables, near, similar):
    """A library like Margrave that fits META-DES on these neighbours."""
    classifier = meta_des.fit_on_neighbours(tables, near, similar)
    predicted = {"meta-des": comparing.ours(tables, "meta-des")[0]}
    return Peer(predicted, near, similar, classifier.coef, np.array(classifier.intercept))


class TestMetaDes:
    def test_own_neighbours_give_the_fitted_model(self, pima):
        near, similar = _neighbours(pima)
        assert near.shape == (256, data.K)
        assert not (near == np.arange(256)[:, None]).any()
        ours = comparing.fit(pima, "meta-des")._meta_des.classifier
        again = meta_des.fit_on_neighbours(pima, near, similar)
        np.testing.assert_allclose(again.coef, ours.coef, rtol=1e-9)
        assert again.intercept == pytest.approx(ours.intercept)

    def test_the_same_neighbours(self, pima):
        found = meta_des.check(pima, _peer(pima, *_neighbours(pima)))
        assert (found.n, found.others, found.own) == (256, 0, 0)
        assert found.difference == pytest.approx(0, abs=1e-9)
        assert found.counts.same == 1

    def test_other_neighbours(self, pima):
        near, similar = _neighbours(pima)
        near = near.copy()
        near[0, 0], near[1, 0] = 0, near[1, 1]
        peer = _peer(pima, near, similar)
        found = meta_des.check(pima, replace(peer, coef=peer.coef + 0.25))
        assert (found.others, found.own) == (2, 1)
        assert found.difference == pytest.approx(0.25)
        twice = found + replace(found, difference=0.5)
        assert (twice.n, twice.others, twice.own, twice.difference) == (512, 4, 2, 0.5)


def _timing(seconds, queries=100):
    one = {"queries": queries, "predict": seconds, "kneighbors": seconds / 2, "accuracy": 0.9}
    return {"members": 0.25, "methods": dict.fromkeys(METHODS, one)}


def _results(apart=0, tied=10, slower=4.0, vote=60, single=65, *, peer=True):
    """Two sets of 100 queries; META-DES differs on the second so often outside ties."""
    runs = []
    for title in ("pima", "segment"):
        by = {
            method: MethodCounts(100, 70, 70 if peer else 0, Counter({VOTES: tied}), Counter())
            for method in METHODS
        }
        if title == "segment":
            by["meta-des"] = replace(by["meta-des"], apart=Counter({OUTSIDE: apart, VOTES: 1}))
        right = {comparing.VOTE: vote, comparing.SINGLE: single, comparing.ORACLE: 95}
        fitted = replace(by["meta-des"], apart=Counter())
        check = MetaCheck(50, 5, 2, 1e-12, fitted) if peer else None
        runs.append(study.Run(title, 0, by, right, check))
    size = replace(study.QUICK.size, n_query=100)
    plan = study.Plan(("pima", "segment"), 1, size)
    theirs = _timing(slower / 2, queries=50) if peer else None
    return Results.of(plan, 0, reversed(runs), _timing(1.0), theirs, VERSIONS if peer else None)


class TestSentences:
    def test_agreement(self):
        found = findings.agreement(_results())
        assert bold(found) == [MET]
        assert "0 of 1,800" in found
        found = findings.agreement(_results(apart=2))
        assert bold(found) == [MISSED]
        for fact in ("meta-des", "segment", "2 of 1,800", "3 of 2,000"):
            assert fact in found
        assert bold(findings.agreement(_results(peer=False))) == []

    def test_ties_are_few_or_not(self):
        found = findings.minority(_results())
        assert bold(found) == [MET]
        for fact in ("10 %", "ola", "pima"):
            assert fact in found
        found = findings.minority(_results(tied=60))
        assert bold(found) == [MISSED]
        assert "60 %" in found

    def test_time(self):
        found = findings.faster(_results())
        assert bold(found) == [MET]
        assert " 4 " in found
        assert "ola" in found
        found = findings.faster(_results(slower=0.5))
        assert bold(found) == [MISSED]
        assert " 0.5 " in found
        assert bold(findings.faster(_results(peer=False))) == []

    def test_whether_selection_helps(self):
        found = findings.better(_results())
        assert ", ".join(METHODS) in found  # all are above, and so none is below
        assert "+10.00 ± 0.00" in findings.helps(_results())
        found = findings.better(_results(vote=80))  # the vote is above all, the best member below
        assert "-10.00 ± 0.00" in findings.helps(_results(vote=80))
        assert ", ".join(METHODS[:2]) not in found
        assert ", ".join(METHODS) in findings.better(_results(vote=80, single=75))  # all are below

    def test_the_peer(self):
        for name, version in VERSIONS.items():
            assert f"{name} {version}" in findings.peer(_results())
        assert "`.venv-deslib`" in findings.peer(_results(peer=False))

    def test_meta_des_with_the_neighbours_of_the_peer(self):
        found = findings.meta_des(_results(apart=2))
        for fact in ("1e-12", "0 of 180", "2 of 180"):
            assert fact in found
        assert not re.search(r"\d", findings.meta_des(_results(peer=False)))

    def test_tables(self):
        results = _results(apart=2)
        rows = tables.methods(results)
        row = "| meta-des | 200 | 98.50 % | 10.0 % | 98.89 % | **97.78 %** | 70.00 | 70.00 |"
        assert row in rows
        assert "| ola | 200 | 100 % | 10.0 % | 100 % | 100 % | 70.00 | 70.00 |" in rows
        assert "| pima | **70.0** |" in tables.accuracy(results)
        assert "| ola | 1 | 4 (from 50 queries) | 4 | 4 |" in tables.times(results)
        rows = tables.methods(_results(peer=False))
        assert "| ola | 200 | – | 10.0 % | – | – | 70.00 | – |" in rows
        assert "| ola | 1 | – | – | – |" in tables.times(_results(peer=False))

    def test_all_is_all(self):
        assert (tables.format_fraction(1), tables.format_fraction(0.99999)) == ("100 %", "99.99 %")


def test_times_are_measured_by_method():
    size = replace(study.QUICK.size, n_tune=60, n_query=40, n_trees=3)
    found = timing.ours(size)
    assert tuple(found["methods"]) == METHODS
    for one in found["methods"].values():
        assert one["queries"] == 40
        assert 0 < one["kneighbors"] < one["predict"]
        assert one["accuracy"] > 0.5


def test_the_better_time_counts():
    fast, slow = _timing(1.0), _timing(2.0) | {"members": 0.1}
    slow["methods"] = slow["methods"] | {"ola": fast["methods"]["ola"] | {"predict": 0.5}}
    found = timing.better(fast, slow)
    assert found["members"] == 0.1
    assert [found["methods"][name]["predict"] for name in ("ola", "lca")] == [0.5, 1.0]


@pytest.mark.full
def test_the_command_writes_the_page_without_the_peer(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "deslib.md").read_text()
    assert "experiments.select --quick" in page
    assert findings.ABSENT in page
    assert "$" not in page
    assert not re.search(r"\bnan\b", page)
    assert str(comparing.ROOT) not in page
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
