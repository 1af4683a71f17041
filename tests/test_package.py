"""What `import margrave` gives, and what it leaves alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import margrave

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = (
    *("pandas", "pyarrow", "matplotlib", "xgboost", "lightgbm", "catboost", "skops", "rich"),
    *("fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "skl2onnx", "onnxruntime"),
)


def run(code):
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_rooms_are_loaded_when_first_used():
    done = run(
        "import sys, margrave; before = 'margrave.fuse' in sys.modules;"
        "margrave.fuse.VoteClassifier; print(before, 'margrave.fuse' in sys.modules)"
    )
    assert (done.stdout, done.stderr) == ("False True\n", "")


def test_who_only_reads_a_table_loads_no_models():
    """An uploaded file is read in a process of its own, and its user waits for it."""
    done = run(
        "import sys, margrave.studio._parse_worker;"
        "heavy = 'sklearn', 'scipy', 'fastapi', 'sqlalchemy';"
        "print([one for one in heavy if one in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("room", margrave._PACKAGES)
def test_every_room_is_listed_and_says_what_is_public(room):
    module = getattr(margrave, room)
    assert room in dir(margrave)
    assert all(hasattr(module, name) for name in module.__all__)
    assert module.__doc__


def test_unknown_names_are_the_usual_error():
    with pytest.raises(AttributeError, match=r"'margrave'.*'steering'"):
        _ = margrave.steering


def private_imports(source):
    """Names with an underscore that a module imports from packages other than Margrave."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = [part for part in name.split(".") if not part.startswith("__")]
            if parts and parts[0] != "margrave" and any(part.startswith("_") for part in parts):
                yield name


def test_no_private_names_of_other_packages_are_imported():
    assert list(private_imports("from sklearn.utils.validation import _num_samples"))
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "src").rglob("*.py")
        for name in private_imports(path.read_text(encoding="utf-8"))
    }
    assert not found


@pytest.mark.core
def test_the_core_works_without_any_optional_package():
    code = f"""
import sys
class Missing:
    def find_spec(self, name, *_):
        if name in {OPTIONAL!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import margrave
margrave.datasets.load("iris")
margrave.catalogue.make("tree")
margrave.fuse.VoteClassifier([margrave.catalogue.make("knn")]).fit([[0], [1]] * 5, [0, 1] * 5)
import margrave.compare, margrave.members
"""
    done = run(code)
    assert done.stderr == ""
    assert done.returncode == 0


def test_import_adds_no_optional_package():
    code = (
        "import sys, sklearn.ensemble; before = set(sys.modules); import margrave;"
        f"print([m for m in {OPTIONAL!r} if m in sys.modules and m not in before])"
    )
    assert run(code).stdout == "[]\n"


def test_the_version_is_in_the_changelog():
    assert f"## {margrave.__version__}" in (ROOT / "CHANGELOG.md").read_text()
