"""The progress of a training on a terminal."""

from margrave.app.messages import describe_training
from margrave.app.terminal import Bars
from margrave.confusion import Confusion
from margrave.steer import Progress

MATRIX = Confusion([[1040, 3], [2, 5]], ["ham", "spam"], "spam")


def test_the_line_tells_what_is_trained_what_is_next_and_the_errors_so_far():
    bars = Bars(shown=True)
    progress = Progress(3, 12, "a", ("a",), ("b", "c"), ("d", "e\x1b[2J"), MATRIX, ("a",))
    bars.training(progress)
    (task,) = bars.tasks
    assert (task.completed, task.total) == (3, 12)
    trained, after = task.description.split("next")
    assert "b" in trained
    assert "c" in trained
    assert "d, e" in after
    assert "\x1b" not in task.description, "names come from the user"
    for number in ("5 errors", "1 of 5"):
        assert number in task.fields["status"]


def test_without_a_matrix_there_are_no_errors_to_tell():
    bars = Bars(shown=True)
    bars.training(Progress(1, 12, "a", (), ("a",), ("b",)))
    assert bars.tasks[0].fields["status"] == ""


def test_every_moment_of_a_training_is_described():
    assert "next" not in describe_training(Progress(11, 12, "b", ("a",), ("b",), ()))
    assert describe_training(Progress(12, 12, "b", ("a", "b"), (), ()))
    assert "2 of 5" in describe_training(Progress(2, 5, "martingale"))
