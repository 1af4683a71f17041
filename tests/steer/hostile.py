"""Use each hostile file of a folder as a user would, in a process that may die of it.

``python -m tests.steer.hostile FOLDER`` prints a line before each file, and after it the exit codes
of the commands; a command that ends in another way than by its exit code ends the process.
"""

import contextlib
import io
import sys
import warnings
from pathlib import Path

from margrave import cli
from margrave.steer import FileError, SteeredClassifier


def run(*arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            cli.main([str(one) for one in arguments])
        except SystemExit as ended:
            return ended.code


def use(path, table):
    """Load a file and use what it holds: what happened, in words."""
    try:
        SteeredClassifier.load(path)
    except FileError as error:
        return f"refused {error.code}"
    codes = (
        run("predict", path, table),
        run("card", path),
        run("check", path, table, "--target", "y"),
    )
    return " ".join(["used", *map(str, codes)])


def main(folder):
    warnings.simplefilter("ignore")
    for path in sorted(folder.glob("*.skops")):
        print(path.stem, end=": ", flush=True)
        print(use(path, folder / "table.csv"), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
