"""The progress of a training on a terminal."""

import re

import pytest

from margrave.app.messages import describe_training
from margrave.app.terminal import Bars
from margrave.confusion import Confusion
from margrave.steer import Progress

MATRIX = Confusion([[1040, 3], [2, 5]], ["ham", "spam"], "spam")


def test_the_line_tells_what_is_trained_what_is_next_and_the_errors_so_far():
    bars = Bars(shown=True)
    progress = Progress(
        3, 12, "qda", ("qda",), ("bayes", "trees"), ("forest", "svm\x1b[2J"), MATRIX, ("qda",)
    )
    bars.training(progress)
    (task,) = bars.tasks
    assert (task.completed, task.total) == (3, 12)
    places = [task.description.index(name) for name in ("bayes", "trees", "forest", "svm")]
    assert places == sorted(places), "what is trained, then what is next"
    assert "\x1b" not in task.description, "names come from the user"
    assert re.findall(r"\d+", task.fields["status"]) == ["5", "1", "5"], "errors, members of all"


def test_without_a_matrix_there_are_no_errors_to_tell():
    bars = Bars(shown=True)
    bars.training(Progress(1, 12, "a", (), ("a",), ("b",)))
    assert bars.tasks[0].fields["status"] == ""


def test_every_moment_of_a_training_is_described():
    running = describe_training(Progress(11, 12, "trees", ("qda",), ("trees",), ()))
    assert "trees" in running
    assert "qda" not in running
    assert describe_training(Progress(12, 12, "trees", ("qda", "trees"), (), ()))
    levels = describe_training(Progress(2, 5, "martingale"))
    assert re.findall(r"\d+", levels) == ["2", "5"]


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("terminal", [True, False])
def test_without_a_terminal_each_member_and_each_limit_is_one_line(
    shown, terminal, monkeypatch, capsys
):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    bars = Bars(shown=shown)
    for finished, running in ([(), ("a",)], [("a",), ("b\x1b",)], [("a",), ("b\x1b",)]):
        bars.training(Progress(1, 12, "a", finished, running, ()))
    bars.training(Progress(12, 12, "b\x1b", ("a", "b\x1b"), (), ()))
    bars.reply("fp <= 2%", None)
    lines = capsys.readouterr().err.splitlines()
    if not shown or terminal:
        assert lines == []
        return
    names = [re.search("1 of 2|2 of 2|fp <= 2%", line)[0] for line in lines]
    assert names == ["1 of 2", "2 of 2", "fp <= 2%"]
    assert "\x1b" not in lines[1]
