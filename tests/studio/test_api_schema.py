"""The API keeps to its own description, whatever is sent to it."""

import json
import re
from types import SimpleNamespace

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.studio.serving import serving

from margrave.studio import Settings, create_app

EXAMPLES = 6  # of each kind, for each operation
FEW = ("accept", "grow", "tune", "prefer", "report.html", "model.onnx", "dialogs")
FEWER = 3  # where each takes long
MEANT = {
    "name": "iris",
    "target": "target",
    "positive": None,
    "drop": [],
    "group": None,
    "time": None,
    "certify": 0.3,
    "guarantee": None,
    "members": ["logistic"],
    "levels": 1,
    "wants": ["accuracy >= 50%"],
    "edits": [],
    "strategies": ["move"],
    "at": 0,
    "step": 0,
    "node": "0-0-0",
    "first": 0,
    "second": 0,
    "sort": "row",
    "cost_low": 0.5,
    "prior_low": 0.1,
}
ERRORS = {"400", "401", "403", "404", "409", "413", "415", "421", "422", "429", "503"}


def described():
    """The studio's description of itself; nothing runs."""
    app = create_app(SimpleNamespace(settings=Settings(), store=None))
    return app.openapi()


OPENAPI = described()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, found in OPENAPI["paths"].items()
    for method, operation in found.items()
]
NAMES = [f"{method} {path}" for method, path, _ in OPERATIONS]


# The description


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=NAMES)
def test_every_operation_is_described(method, path, operation):
    assert operation["summary"]
    assert re.fullmatch(r"[A-Z].{10,}", operation["description"])
    assert set(operation["responses"]) >= ERRORS
    for status in ERRORS:
        response = operation["responses"][status]
        assert response["description"].endswith(".")
        schema = response["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Problem"}
    inside = re.findall(r"{(\w+)}", path)
    parameters = operation.get("parameters", [])
    assert [one["name"] for one in parameters if one["in"] == "path"] == inside


def test_all_that_is_sent_and_received_is_described():
    for method, path, operation in OPERATIONS:
        good = [code for code in operation["responses"] if code < "300"]
        assert len(good) == 1, path
        if method in ("POST", "PATCH") and "requestBody" in operation:
            (kind,) = operation["requestBody"]["content"]
            wanted = "multipart/form-data" if path == "/api/tables" else "application/json"
            assert kind == wanted
    for name, schema in OPENAPI["components"]["schemas"].items():
        if name not in ("HTTPValidationError", "ValidationError") and not name.startswith("Body_"):
            assert schema.get("description"), name


def test_nothing_is_said_of_where_it_runs():
    text = json.dumps(OPENAPI)
    assert "/home/" not in text
    assert "site-packages" not in text
    assert OPENAPI["info"]["title"] == "Margrave studio"


def test_downloads_say_what_they_are():
    for _, path, operation in OPERATIONS:
        if re.search(r"\.\w+$", path) or path.endswith("/events"):
            (good,) = [
                response for code, response in operation["responses"].items() if code < "300"
            ]
            kinds = set(good.get("content", {}))
            assert kinds, path
            assert kinds != {"application/json"} or path.endswith(".json"), path


# The API


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A studio with something of everything, and the names of that."""
    with serving(tmp_path_factory.mktemp("schema")) as (_, client):
        client.ok("/openapi.json")  # all routes are there before anything is trained
        dialog = client.dialog("pima", members=["logistic"])
        client.asked(dialog, "fp <= 60", strategies=["move"])
        job = client.post(f"{dialog}/accept", {"confidence": 0.8})
        assert client.finished(job)["state"] == "done"
        program = client.dialog("iris", kind="program", members=None, levels=2)
        names = {
            "dialog": [one.removeprefix("/dialogs/") for one in (dialog, program)],
            "table": [client.table("iris")],
            "job": [job.json()["id"]],
            "number": ["1"],
        }
        yield client, names


@pytest.fixture(scope="module")
def schema(served):
    return schemathesis.openapi.from_dict(OPENAPI)


def can_be_wrong(operation):
    """Whether something can be sent that does not fit: any text may be the name of a dialog."""
    free = {"in": "path", "type": "string"}
    given = [{"in": one["in"], **one["schema"]} for one in operation.get("parameters", ())]
    bound = [one for one in given if {key: one.get(key) for key in free} != free]
    return "requestBody" in operation or bool(bound)


CASES = [
    pytest.param(method, path, mode, id=f"{method} {path} {mode.value}")
    for method, path, operation in OPERATIONS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or can_be_wrong(operation)
]


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_what_is_answered_fits_the_description(served, schema, method, path, mode):
    client, names = served
    seen = []

    def sent(case):
        parts = {str(where.value): one.mode for where, one in case.meta.components.items()}
        if parts.get("path") is not GenerationMode.NEGATIVE:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = names[name][len(seen) % len(names[name])]
        if mode is GenerationMode.POSITIVE and len(seen) % 2:  # every other one can be done
            for given in (case.body, case.query):
                if isinstance(given, dict):
                    given.update({name: MEANT[name] for name in given if name in MEANT})
        if isinstance(case.body, dict) and isinstance(case.body.get("table"), str):
            case.body |= {"table": names["table"][0], "members": ["logistic"]}
        if method == "DELETE":
            case.path_parameters["dialog"] = "not-there"
        case.headers = {**(case.headers or {}), "X-Margrave": "1"}
        answer = case.call_and_validate(
            base_url=str(client.http.base_url),
            excluded_checks=[positive_data_acceptance],  # what cannot be done is 400
        )
        assert answer.status_code < 500
        if answer.status_code >= 400:
            response = answer.json()
            assert set(response) == {"error", "code", "fields"}
            assert response["error"]
            assert "Traceback" not in response["error"]
            assert not re.search(r"/(home|usr|tmp|work)/", response["error"])
        if answer.status_code == 202:
            job = answer.json().get("job", answer.json())["id"]
            assert list(client.events(job))[-1][0] == "end"
        seen.append(answer.status_code)

    last = path.rsplit("/", 1)[-1]
    few = FEWER if last in FEW else EXAMPLES
    strategy = schema[path][method].as_strategy(generation_mode=mode)
    settings(
        max_examples=few,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )(given(case=strategy)(sent))()
    assert seen
