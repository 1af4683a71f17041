"""What the studio shows of a dialog, held against the library's own dialog and against counting."""

import csv
import io
import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.studio.serving import connected, serving

from margrave import Confusion, datasets
from margrave.steer import Dialog, GuaranteeError
from margrave.studio import views
from margrave.studio.choices import Source
from margrave.studio.facts import facts_of
from margrave.studio.routes_tables import add_table
from margrave.studio.uploads import parquet_of

MEMBERS = ["logistic", "qda"]
FAST = ["move", "reject"]
ASKED = [(0, "fp <= 10"), (1, "fp <= 3, rejected <= 60%"), (0, "fn <= 30"), (0, "fp <= 0, fn <= 0")]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("views")) as made:
        made[1].ok("/openapi.json")  # all routes are there before anything is trained
        yield made


@pytest.fixture(scope="module")
def client(studio):
    return studio[1]


@pytest.fixture(scope="module")
def two(client):
    """A dialog over two classes that branches, rejects and is once not met; and the library's."""
    name = client.dialog("pima", members=MEMBERS, positive="pos")
    frame = datasets.load("pima", as_frame=True).frame
    own = Dialog.from_data(
        frame.drop(columns="target"),
        frame["target"],
        committee=MEMBERS,
        positive="pos",
        random_state=0,
    )
    for at, want in ASKED:
        client.asked(name, want, at=at, keep=False, strategies=FAST)
        own.goto(at)
        own.prefer(want, strategies=FAST)
    return name, own, frame


@pytest.fixture(scope="module")
def three(client):
    """A dialog over three classes, and the library's."""
    name = client.dialog("iris", members=MEMBERS, certify=0.3)
    frame = datasets.load("iris", as_frame=True).frame
    own = Dialog.from_data(
        frame.drop(columns="target"),
        frame["target"],
        committee=MEMBERS,
        certify=0.3,
        random_state=0,
    )
    want = "errors(versicolor -> virginica) <= 1, rejected <= 10%"
    client.asked(name, want, strategies=FAST)
    own.prefer(want, strategies=FAST)
    return name, own, frame


@pytest.fixture(scope="module")
def program(client):
    """A dialog over a program, and the library's."""
    name = client.dialog("pima", kind="program", members=None, levels=3)
    X, y = datasets.load("pima", return_X_y=True, as_frame=True)
    own = Dialog.from_data(X, y, committee="martingale", levels=3, positive="pos", random_state=0)
    return name, own


def all_rows(client, name, **which):
    """All rows of a cell, page by page."""
    found, offset = [], 0
    while True:
        page = client.ok(f"{name}/rows", params={"limit": 200, "offset": offset, **which})
        found += page["rows"]
        offset += 200
        if offset >= page["total"]:
            assert len(found) == page["total"]
            return found


def counted(rows, classes):
    """A confusion matrix by counting rows one by one."""
    answers = [*classes, None]
    matrix = [[0] * len(answers) for _ in classes]
    for row in rows:
        matrix[classes.index(row["true"])][answers.index(row["predicted"])] += 1
    return matrix


def as_text(label):
    return str(label)


# Steps


@pytest.mark.parametrize("which", ["two", "three"])
def test_steps_are_those_of_the_library(client, which, request):
    name, own, _ = request.getfixturevalue(which)
    received = client.ok(name)
    assert received["n"] == own.confusion.n
    assert received["classes"] == list(own.classes)
    assert received["positive"] == own.confusion.positive
    assert received["members"] == list(own.members)
    assert len(received["steps"]) == len(own.history)
    for step, reply in zip(received["steps"], own.history, strict=True):
        assert step["after"]["counts"] == reply.after.counts.tolist()
        assert step["before"]["counts"] == reply.before.counts.tolist()
        assert step["strategy"] == reply.strategy
        assert step["met"] == reply.met
        assert step["shortfall"] == pytest.approx(reply.shortfall, rel=1e-9)
        assert step["preference"] == (None if reply.preference is None else str(reply.preference))
        assert step["warnings"] == list(reply.warnings)
        assert step["instead"] == (None if reply.instead is None else str(reply.instead))
        assert len(step["sentences"]) == (
            0 if reply.preference is None else len(reply.preference.bounds)
        )


def test_alternatives_are_those_of_the_library(client, two):
    name, own, _ = two
    short, reply = client.ok(name)["steps"][4], own.history[4]
    assert not short["met"]
    assert [one["kept"] for one in short["alternatives"]] == ["fp <= 0", "fn <= 0", None]
    for sent, one in zip(short["alternatives"], reply.alternatives, strict=True):
        assert sent["text"] == str(one)
        assert sent["confusion"]["counts"] == one.confusion.counts.tolist()
        assert [(miss["bound"], miss["samples"]) for miss in sent["misses"]] == [
            (str(bound), amount) for bound, amount in one.misses
        ]


def test_before_is_where_the_step_was_asked_from(client, two):
    steps = client.ok(two[0])["steps"]
    assert [step["parent"] for step in steps] == [None, 0, 1, 0, 0]
    for step in steps[1:]:
        assert step["before"] == steps[step["parent"]]["after"]


def test_changes_are_the_cells_of_mistakes_that_differ(client, two):
    for step in client.ok(two[0])["steps"]:
        classes = step["after"]["classes"]
        before, after = step["before"]["counts"], step["after"]["counts"]
        differing = [
            {"true": true, "predicted": answer, "before": before[i][j], "after": after[i][j]}
            for i, true in enumerate(classes)
            for j, answer in enumerate([*classes, None])
            if i != j and before[i][j] != after[i][j]
        ]
        assert step["changes"] == differing
        assert step["fp"] == after[0][1]
        assert step["fn"] == after[1][0]


def test_parts_and_support_count_the_rows(client, two, three, program):
    for name, own in (two[:2], three[:2], program):
        received = client.ok(name)
        parts, sizes = received["parts"], own.sizes
        assert parts["tune"] == received["n"] == own.confusion.n
        assert parts["certify"] == sizes.certify == sum(one["n"] for one in received["support"])
        by_class = {one["label"]: one["n"] for one in received["support"]}
        assert by_class == sizes.certify_by_class
        rows = 150 if received["title"] == "iris" else 768
        apart = parts["tune"] if received["kind"] == "program" else 0
        assert parts["train"] + apart + parts["certify"] + parts["unused"] == rows


# Rows


@pytest.mark.parametrize(("which", "steps"), [("two", (0, 1, 2, 4)), ("three", (0, 1))])
def test_the_rows_behind_every_cell_are_as_many_as_it_says(client, which, steps, request):
    name = request.getfixturevalue(which)[0]
    received = client.ok(name)
    classes = received["classes"]
    for number in steps:
        client.ok(f"{name}/goto", {"step": number})
        counts = received["steps"][number]["after"]["counts"]
        rows = all_rows(client, name)
        assert counted(rows, classes) == counts
        for i, true in enumerate(classes):
            total = client.ok(f"{name}/rows", params={"true": as_text(true), "limit": 1})["total"]
            assert total == sum(counts[i])
            for j, answer in enumerate([*classes, None]):
                cell = {"rejected": True} if answer is None else {"predicted": as_text(answer)}
                page = client.ok(
                    f"{name}/rows", params={"true": as_text(true), "limit": 200, **cell}
                )
                assert page["total"] == counts[i][j]
                assert all(
                    row["true"] == true and row["predicted"] == answer for row in page["rows"]
                )


def test_a_row_is_the_line_of_the_table_that_it_names(client, two):
    name, own, frame = two
    client.ok(f"{name}/goto", {"step": 1})
    page = client.ok(f"{name}/rows", params={"limit": 200, "sort": "row"})
    assert page["columns"] == [column for column in frame.columns if column != "target"]
    rows = all_rows(client, name)
    places = [row["row"] - 1 for row in rows]
    assert sorted(places) == sorted(own.rows().at.tolist())
    for row in rows[::20]:
        line = frame.iloc[row["row"] - 1]
        assert row["true"] == line["target"]
        shown = [f"{value:.6g}" for value in line.drop("target").tolist()]
        assert row["values"] == shown


def test_certainty_is_the_share_of_samples_that_are_nearer_to_another_answer(client, two):
    name, own, _ = two
    for number in (0, 1, 2):
        client.ok(f"{name}/goto", {"step": number})
        option = own.history[number].candidate
        decision = option.decision
        sizes = []
        for score in option.scores.tolist():
            if score > decision.high:
                sizes.append(score - decision.high)
            elif score <= decision.low:
                sizes.append(max(decision.low - score, math.ulp(0.0) if decision.rejects else 0.0))
            else:
                sizes.append(0.0)
        at = {place: i for i, place in enumerate(own.rows().at.tolist())}
        for row in all_rows(client, name)[::40]:
            size = sizes[at[row["row"] - 1]]
            nearer = sum(other < size for other in sizes) / len(sizes)
            assert row["certainty"] == pytest.approx(nearer, abs=1.5 / len(sizes))
            assert 0 <= row["certainty"] < 1
            assert row["predicted"] is not None or row["certainty"] == 0


def test_rows_by_certainty_begin_with_the_doubtful(client, three):
    name = three[0]
    received = [row["certainty"] for row in all_rows(client, name)]
    assert received == sorted(received)
    back = [row["certainty"] for row in all_rows(client, name, descending=True)]
    assert back == sorted(received, reverse=True)


def test_pages_put_together_are_the_whole(client, three):
    name = three[0]
    whole = all_rows(client, name, sort="column:petal_width")
    pages = [
        row
        for offset in range(0, len(whole), 7)
        for row in client.ok(
            f"{name}/rows", params={"sort": "column:petal_width", "limit": 7, "offset": offset}
        )["rows"]
    ]
    assert pages == whole
    beyond = client.ok(f"{name}/rows", params={"offset": 10**9})
    assert (beyond["total"], beyond["rows"]) == (len(whole), [])


# A table with all that tables have


ODD = 160  # rows


def odd_frame():
    """Names like ours, missing values, dates, texts, formulas, Booleans and quotes."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, ODD)
    return pd.DataFrame(
        {
            "row": rng.normal(size=ODD) + code,
            "true": rng.choice(["t", "f"], ODD),
            "member:line": rng.choice(["a", "b", None], ODD),
            "when": pd.date_range("2024-01-01", periods=ODD)[::-1],
            "=cmd": np.where(code, "=1+1", "@x"),
            "text": [f"some words here {i % 50}" for i in range(ODD)],
            "gaps": np.where(rng.random(ODD) < 0.3, np.nan, rng.normal(size=ODD) - code),
            "<b>": rng.choice([True, False], ODD),
            'ü "q"': rng.integers(0, 5, ODD),
            "level": pd.Categorical(rng.choice(["lo", "hi"], ODD)),
            "words": rng.choice(["a", "b", None], ODD),
            "long": ["x" * 500 if i else "y" for i in range(ODD)],
            "y": np.where(code, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def odd(studio):
    made, client = studio
    frame = odd_frame()
    source = Source("odd.csv", bundled=False)
    table = add_table(made, "local", source, facts_of(frame), parquet_of(frame)).id
    begun = client.post(
        "/dialogs",
        {"table": table, "target": "y", "positive": "yes", "members": ["logistic"], "certify": 0.2},
    )
    assert client.finished(begun)["state"] == "done"
    return f"/dialogs/{begun.json()['dialog']['id']}", frame


@pytest.mark.parametrize(
    "column", ["when", "gaps", "text", "words", "level", "<b>", 'ü "q"', "=cmd"]
)
def test_rows_sort_by_any_column(client, odd, column):
    name, frame = odd
    shown = all_rows(client, name, sort=f"column:{column}")
    values = [frame[column].iloc[row["row"] - 1] for row in shown]
    known = [value for value in values if not pd.isna(value)]
    assert [pd.isna(value) for value in values] == sorted(map(pd.isna, values))  # none comes last
    ordered = sorted(known, key=str) if frame[column].dtype.kind not in "biufM" else sorted(known)
    assert known == ordered
    back = all_rows(client, name, sort=f"column:{column}", descending=True)
    assert Counter(row["row"] for row in back) == Counter(row["row"] for row in shown)
    turned = [frame[column].iloc[row["row"] - 1] for row in back]
    assert [value for value in turned if not pd.isna(value)] == ordered[::-1]
    assert [pd.isna(value) for value in turned] == sorted(map(pd.isna, turned))


def test_values_are_short_texts_and_nothing_where_there_is_none(client, odd):
    name, frame = odd
    page = client.ok(f"{name}/rows", params={"sort": "row", "limit": 200})
    at = {column: i for i, column in enumerate(page["columns"])}
    assert "y" not in at
    for row in page["rows"]:
        line = frame.iloc[row["row"] - 1]
        assert (row["values"][at["gaps"]] == "") == bool(pd.isna(line["gaps"]))
        assert (row["values"][at["member:line"]] == "") == bool(pd.isna(line["member:line"]))
        assert len(row["values"][at["long"]]) <= 200
        assert row["values"][at["=cmd"]] == line["=cmd"]


def test_the_csv_has_all_rows_and_no_formulas(client, odd):
    name, frame = odd
    matrix = client.ok(name)["steps"][0]["after"]["counts"]
    answer = client.get(f"{name}/rows.csv", params={"true": "no", "predicted": "yes"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="rows.csv"' in answer.headers["content-disposition"]
    head, *lines = csv.reader(io.StringIO(answer.text))
    assert len(lines) == matrix[0][1]
    assert head[:5] == ["row_", "true_", "predicted", "certainty", "member:logistic"]
    assert head[5:] == ["'=cmd" if name == "=cmd" else name for name in frame.columns[:-1]]
    for line in lines:
        received = dict(zip(head, line, strict=True))
        source = frame.iloc[int(received["row_"]) - 1]
        assert (received["true_"], received["predicted"], source["y"]) == ("no", "yes", "no")
        assert received["'=cmd"] == "'" + source["=cmd"]
        assert 0 <= float(received["certainty"]) <= 1
    for cell in (cell for line in lines for cell in line):
        assert not cell.startswith(("=", "@", "\t", "\r"))


# The guarantee


def test_whether_the_guarantee_can_be_proved(client, two):
    """As the library says it of each step, with the reason as an error."""
    name, own, _ = two
    for at in range(len(own.history)):
        client.post(f"{name}/goto", {"step": at})
        own.goto(at)
        for confidence, reserve in ((0.6, False), (0.95, True)):
            options = {"confidence": confidence, "reserve": reserve}
            received = client.ok(f"{name}/guarantee", params=options)
            if own.reply.preference is not None:
                found = own.expected_certificate(**options).to_dict()
                del found["schema_version"]
                assert received["expected"] == found
                assert (received["error"] is None) == (found["probability"] > 0)
            if received["error"] is None:
                own.check_accept(**options)
                continue
            with pytest.raises(GuaranteeError) as refused:
                own.check_accept(**options)
            expected = refused.value.to_dict()
            assert (received["code"], received["fields"]) == (expected["code"], expected["fields"])


# Members


@pytest.mark.parametrize(("which", "step"), [("two", 1), ("two", 2), ("three", 1)])
def test_what_members_say_is_what_their_votes_in_the_rows_say(client, which, step, request):
    name = request.getfixturevalue(which)[0]
    classes = client.ok(f"{name}/goto", {"step": step})["classes"]
    rows, received = all_rows(client, name), client.ok(f"{name}/members")
    assert [one["name"] for one in received["members"]] == MEMBERS
    for j, one in enumerate(received["members"]):
        wrong = sum(row["votes"][j] != row["true"] for row in rows)
        assert one["n_errors"] == wrong
        assert one["accuracy"] == pytest.approx(1 - wrong / len(rows))
        if len(classes) == 2:
            assert one["fp"] == sum(
                (row["true"], row["votes"][j]) == ("neg", "pos") for row in rows
            )
            assert one["fn"] == sum(
                (row["true"], row["votes"][j]) == ("pos", "neg") for row in rows
            )
        else:
            assert one["fp"] is None
            assert one["fn"] is None
    shares = received["disagreement"]
    for i in range(len(MEMBERS)):
        for j in range(len(MEMBERS)):
            differing = sum(row["votes"][i] != row["votes"][j] for row in rows)
            assert shares[i][j] == pytest.approx(differing / len(rows))
    agreeing = [sum(vote == row["predicted"] for vote in row["votes"]) for row in rows]
    wrong = [row["predicted"] != row["true"] for row in rows]
    assert received["n_by_votes"] == [agreeing.count(n) for n in range(3)]
    assert received["wrong_by_votes"] == [
        sum(bad for n, bad in zip(agreeing, wrong, strict=True) if n == many) for many in range(3)
    ]
    assert sum(received["margins"]["wrong"]) == sum(wrong)
    assert sum(received["margins"]["right"]) == len(rows) - sum(wrong)
    edges = received["margins"]["edges"]
    assert edges == sorted(edges)
    assert (
        len(edges) == len(received["margins"]["right"]) + 1 == len(received["margins"]["wrong"]) + 1
    )


def test_members_have_the_weights_of_the_library(client, two):
    name, own, _ = two
    client.ok(f"{name}/goto", {"step": 0})
    weights = own.history[0].candidate.scorer.weights.tolist()
    received = client.ok(f"{name}/members")
    assert [one["weight"] for one in received["members"]] == pytest.approx(weights, rel=1e-9)


def test_rows_sort_by_a_members_vote(client, two):
    name = two[0]
    for j, member in enumerate(MEMBERS):
        votes = [row["votes"][j] for row in all_rows(client, name, sort=f"member:{member}")]
        assert votes == sorted(votes)


# Trade-offs


def test_no_known_trade_off_beats_the_best(client, two):
    name, own, _ = two
    received = client.ok(f"{name}/frontier")
    assert (received["positive"], received["negative"]) == ("pos", "neg")
    sizes = [sum(row) for row in client.ok(name)["steps"][0]["after"]["counts"]]
    assert [received["n_negative"], received["n_positive"]] == sizes
    points = {
        (fp, fn)
        for curve in received["curves"]
        for fp, fn in zip(curve["fp"], curve["fn"], strict=True)
    }
    best = [(one["fp"], one["fn"]) for one in received["best"]]
    assert set(best) <= points
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(best))
    for fp, fn in points:
        assert any(a <= fp and b <= fn for a, b in best)
    for one in received["best"]:
        assert (one["fp"], one["fn"]) in points
    curve = own.frontier()
    assert [len(one["fp"]) for one in received["curves"]] == [len(one.fp) for one in curve.curves]
    assert {(one["fp"], one["fn"]) for one in received["hull"]} <= set(best)
    assert received["hull"][-1]["high"] is None
    assert all(a["high"] == b["low"] for a, b in pairwise(received["hull"]))


def test_a_member_alone_is_a_point_of_its_curve(client, two):
    name = two[0]
    curves = {one["name"]: one for one in client.ok(f"{name}/frontier")["curves"]}
    for member in client.ok(f"{name}/members")["members"]:
        curve = curves[f"member {member['name']}"]
        at = [fn for fp, fn in zip(curve["fp"], curve["fn"], strict=True) if fp <= member["fp"]]
        assert min(at) <= member["fn"]


@pytest.mark.parametrize(
    "ranges",
    [
        {},
        {"cost_low": 1, "cost_high": 1},
        {"cost_low": 0.5, "cost_high": 2, "prior_low": 0.01, "prior_high": 0.9},
        {"cost_low": 1e-6, "cost_high": 1e6},
    ],
)
def test_winners_cost_least_and_share_the_range(client, two, ranges):
    name = two[0]
    received = client.ok(f"{name}/winners", params=ranges)
    curves = client.ok(f"{name}/frontier")
    n, m = curves["n_positive"], curves["n_negative"]
    points = [
        (fp / m, fn / n)
        for curve in curves["curves"]
        for fp, fn in zip(curve["fp"], curve["fn"], strict=True)
    ]
    winners = received["winners"]
    low, high = winners[0]["low"], winners[-1]["high"]
    assert all(a["high"] == b["low"] for a, b in pairwise(winners))
    for one in winners:
        slope = math.sqrt(one["low"] * one["high"])
        mine = one["fp"] / m + slope * one["fn"] / n
        assert mine <= min(a + slope * b for a, b in points) + 1e-9
    assert received["prior"] == pytest.approx(n / (n + m))
    first, last = (ranges.get(key, received["prior"]) for key in ("prior_low", "prior_high"))
    assert received["priors"] == pytest.approx([first, last])
    assert low == pytest.approx(ranges.get("cost_low", 0.1) * first / (1 - first))
    assert high == pytest.approx(ranges.get("cost_high", 10) * last / (1 - last))


@pytest.mark.parametrize(
    "ranges",
    [
        {"cost_low": 1e-320},
        {"prior_low": 1e-320, "prior_high": 0.5, "cost_low": 1e-10},
    ],
)
def test_winners_in_a_range_without_end(studio, two, ranges):
    with connected(studio[0].settings) as own:  # a line that an error may break
        answer = own.get(f"{two[0]}/winners", params=ranges)
    assert answer.status_code in (200, 400, 422)
    if answer.status_code == 200:
        winners = answer.json()["winners"]
        assert all(0 < one["low"] <= one["high"] for one in winners)


def test_priors_too_small_to_count_are_refused(client, two):
    params = {"prior_low": 5e-324, "prior_high": 0.5}
    assert client.get(f"{two[0]}/winners", params=params).status_code == 422


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (3, 3), (4, 0)])
def test_two_steps_are_compared_sample_by_sample(client, two, first, second):
    name = two[0]
    at = {}
    for number in (first, second):
        client.ok(f"{name}/goto", {"step": number})
        at[number] = {row["row"]: row for row in all_rows(client, name)}
    one, other = at[first], at[second]
    received = client.ok(f"{name}/compare", params={"first": first, "second": second})
    assert received["n_changed"] == sum(
        one[row]["predicted"] != other[row]["predicted"] for row in one
    )
    right = {row: (one[row]["predicted"] == one[row]["true"], other[row]["predicted"] == one[row]["true"]) for row in one}  # fmt: skip # noqa: E501
    assert received["n_only_first"] == sum(a and not b for a, b in right.values())
    assert received["n_only_second"] == sum(b and not a for a, b in right.values())
    steps = client.ok(name)["steps"]
    before, after = (steps[number]["after"]["counts"] for number in (first, second))
    for change in received["changes"]:
        i = ["neg", "pos"].index(change["true"])
        j = ["neg", "pos", None].index(change["predicted"])
        assert (change["before"], change["after"]) == (before[i][j], after[i][j])
    if first == second:
        assert (received["n_changed"], received["changes"]) == (0, [])


def changed(client, name, **which):
    """All rows that changed between two steps, page by page, and the last page."""
    found, page = [], {"total": 1}
    while len(found) < page["total"]:
        params = {"limit": 60, "offset": len(found), **which}
        page = client.ok(f"{name}/compare/rows", params=params)
        found += page["rows"]
    return found, page


def fate(true, predicted):
    return "rejected" if predicted is None else "right" if predicted == true else "wrong"


@pytest.mark.parametrize(("which", "steps"), [("two", (1, 2)), ("two", (4, 3)), ("three", (0, 1))])
def test_changed_rows_are_those_of_two_steps(client, which, steps, request):
    """Row by row as each step shows them, and as many as the matrices and the filters say."""
    name = request.getfixturevalue(which)[0]
    first, second = steps
    at = {}
    for number in steps:
        client.ok(f"{name}/goto", {"step": number})
        at[number] = {row["row"]: row for row in all_rows(client, name)}
    rows, page = changed(client, name, first=first, second=second)
    received = client.ok(f"{name}/compare", params={"first": first, "second": second})
    assert page["total"] == page["n_changed"] == received["n_changed"] == len(rows) > 0
    differing = [
        n for n, row in at[first].items() if row["predicted"] != at[second][n]["predicted"]
    ]
    assert sorted(row["row"] for row in rows) == sorted(differing)
    for row in rows:
        before, after = at[first][row["row"]], at[second][row["row"]]
        assert row["before"] == before["predicted"]
        assert row["certainty_before"] == before["certainty"]
        assert {key: row[key] for key in after} == after
    expected = {"right": 0, "wrong": 0, "rejected": 0}
    for row in rows:
        old, new = (fate(row["true"], row[key]) for key in ("before", "predicted"))
        expected[new] += old != new
    assert page["n_newly"] == expected
    for kind, n in expected.items():
        some, part = changed(client, name, first=first, second=second, newly=kind)
        assert (part["total"], part["n_newly"]) == (n, expected)
        assert all(fate(row["true"], row["predicted"]) == kind for row in some)
        assert all(fate(row["true"], row["before"]) != kind for row in some)


@pytest.mark.parametrize("key", ["row", "true", "before", "predicted", "certainty_before"])
def test_changed_rows_are_sorted(client, two, key):
    for descending in (False, True):
        order = {"sort": key, "descending": descending}
        rows, _ = changed(client, two[0], first=1, second=2, **order)
        keys = [("~" if row[key] is None else row[key]) for row in rows]  # the rejected are last
        assert keys == sorted(keys, reverse=descending)


def test_changed_rows_are_downloaded(client, two):
    name = two[0]
    rows, _ = changed(client, name, first=1, second=2, newly="wrong", sort="row")
    answer = client.get(
        f"{name}/compare/rows.csv", params={"first": 1, "second": 2, "newly": "wrong"}
    )
    assert answer.headers["content-type"].startswith("text/csv")
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    lines.sort(key=lambda line: int(line["row"]))
    assert [(int(line["row"]), line["true"], line["predicted"]) for line in lines] == [
        (row["row"], row["true"], row["predicted"]) for row in rows
    ]
    assert [line["before"] for line in lines] == [row["before"] or "" for row in rows]
    assert [line["glucose"] for line in lines] == [row["values"][1] for row in rows]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"first": 0}, 422),
        ({"first": -1, "second": 0}, 422),
        ({"first": 0, "second": 99}, 400),
        ({"first": 0, "second": 1, "newly": "zzz"}, 422),
        ({"first": 0, "second": 1, "sort": "zzz"}, 400),
        ({"first": 0, "second": 1, "sort": "column:zzz"}, 400),
    ],
)
def test_changed_rows_of_no_such_steps_are_refused(client, two, params, status):
    assert client.get(f"{two[0]}/compare/rows", params=params).status_code == status


@pytest.mark.parametrize("label", ["setosa", "versicolor", "virginica"])
def test_the_trade_offs_of_each_class_are_those_of_the_library(client, three, label):
    name, own, _ = three
    known = own.frontier(positive=label)
    received = client.ok(f"{name}/frontier", params={"positive": label})
    assert (received["positive"], received["negative"]) == (label, None)
    assert received["best"] == [
        {key: one[key] for key in ("fp", "fn", "name")} for one in known.to_dict()["best"]
    ]
    won = client.ok(f"{name}/winners", params={"positive": label, "cost_low": 2, "cost_high": 2})
    (winner,), best = won["winners"], known.best(cost_ratio=2)
    assert (winner["fp"], winner["fn"], winner["name"]) == (best.fp, best.fn, best.name)


def test_a_class_in_focus_may_be_a_number(client):
    frame = datasets.load("iris", as_frame=True).frame
    frame["target"] = frame["target"].astype("category").cat.codes * 2
    sent = {"file": ("numbers.csv", frame.to_csv(index=False))}
    table = client.http.post("/api/tables", files=sent).json()["id"]
    begun = client.post("/dialogs", {"table": table, "target": "target", "members": MEMBERS})
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    label = client.ok(f"{name}/frontier", params={"positive": "4"})["positive"]
    assert (type(label), label) == (int, 4)
    assert client.get(f"{name}/frontier", params={"positive": "3"}).status_code == 400


@pytest.mark.parametrize("path", ["frontier", "winners"])
def test_trade_offs_need_a_class_that_is_there(client, three, path):
    for label in ("rosa", "", "1", "x" * 2000):
        answer = client.get(f"{three[0]}/{path}", params={"positive": label})
        assert answer.status_code in (400, 422)
        assert "positive" in answer.json()["error"]


def test_three_classes_have_no_trade_off_until_one_is_named(client, three):
    for path in ("frontier", "winners"):
        answer = client.get(f"{three[0]}/{path}")
        assert answer.status_code == 400
        assert "positive" in answer.json()["error"]
    step = client.ok(three[0])["steps"][1]
    assert (step["fp"], step["fn"]) == (None, None)


# Programs


def test_a_program_counts_its_samples_on_every_path(client, program):
    name, own = program
    received = client.ok(f"{name}/program", params={"threshold": 0.1})
    nodes = {node["id"]: node for node in received["nodes"]}
    classes = received["classes"]
    assert len(nodes) == len(received["nodes"])
    sizes = nodes["0-0"]["sizes"]
    coming, going = {key: [0] * 2 for key in nodes}, {key: [0] * 2 for key in nodes}
    for edge in received["edges"]:
        for c, flow in enumerate(edge["flow"]):
            going[edge["start"]][c] += flow
            coming[edge["end"]][c] += flow
        layers = [nodes[edge[end]]["layer"] for end in ("start", "end")]
        assert layers[1] == layers[0] + 1
    ends = np.zeros((2, 2), dtype=int)
    for key, node in nodes.items():
        assert node["layer"] == sum(node["votes"])
        assert "-".join(map(str, node["votes"])) == key
        if key != "0-0":
            assert coming[key] == node["sizes"]
        counts = node["confusion"]["counts"]
        assert [sum(row) for row in counts] == node["sizes"]
        assert node["reach"] == pytest.approx(
            max(a / b for a, b in zip(node["sizes"], sizes, strict=True))
        )
        for c, advantage in enumerate(node["advantages"]):
            if node["sizes"][c]:
                assert advantage == pytest.approx(counts[c][c] / node["sizes"][c] - 0.5)
            else:
                assert advantage is None
        if node["kind"] == "leaf":
            assert node["predicted"] in classes
            ends[:, classes.index(node["predicted"])] += node["sizes"]
        else:
            assert going[key] == node["sizes"]
    steps = client.ok(name)["steps"]
    assert [row[:2] for row in steps[0]["after"]["counts"]] == ends.tolist()
    own.goto(0)
    theirs = own.program
    for node, place in zip(received["nodes"], range(len(theirs.nodes)), strict=True):
        assert node["confusion"]["counts"] == theirs.confusion(place).counts.tolist()


@pytest.mark.parametrize("threshold", [0, 0.05, 0.3, 0.5])
def test_weak_nodes_are_those_with_little_advantage(client, program, threshold):
    name, own = program
    received = client.ok(f"{name}/program", params={"threshold": threshold})
    own.goto(0)
    weak = [node["id"] for node in received["nodes"] if node["weak"]]
    assert weak == ["-".join(map(str, votes)) for votes in own.weak_nodes(threshold)]
    for node in received["nodes"]:
        if node["kind"] == "learner" and all(node["sizes"]):
            assert (node["id"] in weak) == (min(node["advantages"]) < threshold)


def test_after_growing_the_votes_are_the_grown_programs(client, program):
    name, _ = program
    client.ok(f"{name}/goto", {"step": 0})
    grown = client.finished(client.post(f"{name}/program/grow", {"levels": 2}))
    assert grown["state"] == "done"
    assert client.ok(f"{name}/program")["n_levels"] == 5
    errors = sum(row["predicted"] != row["true"] for row in all_rows(client, name))
    received = client.ok(f"{name}/members")
    assert received["n_by_votes"][0] == 0  # one member, and the decision is its own
    assert [one["n_errors"] for one in received["members"]] == [errors]


# Words


LABELS = st.sampled_from(
    [
        ["neg", "pos"],
        ["<b>", "a -> b"],
        [0, 1],
        [False, True],
        ["a b", "and", "it's"],
        [1, 2, 3],
        ["x, y", 'say "x"', "é"],
    ]
)


@st.composite
def edits(draw):
    """A matrix, a cell of it, and another number for it."""
    classes = draw(LABELS)
    k = len(classes)
    counts = draw(
        st.lists(
            st.lists(st.integers(0, 300), min_size=k + 1, max_size=k + 1), min_size=k, max_size=k
        ).filter(lambda rows: all(map(sum, rows)))
    )
    i, j = draw(st.integers(0, k - 1)), draw(st.integers(0, k))
    to = draw(st.integers(0, sum(counts[i])))
    return Confusion(np.array(counts), classes), i, j, to


@given(edits())
def test_an_edit_reads_as_what_it_asks(edit):
    matrix, i, j, to = edit
    classes, counts = matrix.classes, matrix.counts
    answer = None if j == len(classes) else classes[j]
    wanted = matrix.edit(classes[i], answer, to)
    (received,) = views.sentences(wanted, matrix)
    numbers = [f"{n:,}" for n in (to, counts[i].sum())]
    named = [*numbers, str(classes[i]), *([] if answer is None else [str(answer)])]
    assert [one for one in named if one not in received] == []
    other = counts.copy()
    other[i, j] = to
    spare = (i, (j + 1) % len(counts[i]))
    other[spare] += counts[i, j] - to
    bound = wanted.bounds[0]
    kept = to <= counts[i, j] if i == j else to >= counts[i, j]
    assert (bound.slack(matrix) >= 0) == kept
    if other[spare] >= 0:
        assert bound.slack(Confusion(other, classes)) == 0  # the number itself is just allowed


@given(st.integers(0, 100), st.integers(0, 1), st.integers(0, 2))
def test_a_share_is_shown_with_its_count(client, two, percent, i, j):
    name = two[0]
    classes = ["neg", "pos"]
    answer = None if j == 2 else classes[j]
    body = {
        "edits": [{"true": classes[i], "predicted": answer, "to": f"{percent}%"}],
        "keep": False,
    }
    received = client.ok(f"{name}/read", body)
    dialog = client.ok(name)
    row = dialog["steps"][dialog["position"]]["after"]["counts"][i]
    size = sum(row)
    exact = percent * size / 100
    count = math.ceil(exact - 1e-9) if i == j else math.floor(exact + 1e-9)
    assert received["error"] is None
    (sentence,) = received["sentences"]
    assert sorted(re.findall(r"\d+", sentence)) == sorted(map(str, (percent, count, size)))
    assert [one for one in (classes[i], answer or "") if one not in sentence] == []
    matrix = Confusion(np.array(dialog["steps"][dialog["position"]]["after"]["counts"]), classes)
    assert received["preference"] == str(matrix.edit(classes[i], answer, f"{percent}%").limits)
    assert received["already"] == matrix.edit(classes[i], answer, f"{percent}%").met(matrix)
