"""The page's files, and the same page in one."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from cbabo import Model, Problem
from cbabo.numerics import qp
from cbabo.problems import get
from cbabo.solver import library
from cbabo.surfaces.document import document, embedded, empty_document, problem_record, units
from cbabo.surfaces.page import files, single_file
from learned import QUICK, model_of
from simulators import valley


def test_the_document_holds_what_the_page_computes_with(model: Model) -> None:
    content = document(model, "beam")
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    stated = content["surrogates"]["weights"]
    read = np.frombuffer(base64.b64decode(stated["f64"])).reshape(stated["shape"])
    assert np.array_equal(read, model.surrogates.weights.numpy())
    assert content["map"]["sizes"] == list(model.pcm.sizes)
    assert len(content["evaluations"]) == len(model.evaluations)
    assert content["evaluations"][0]["outputs"] == [model.evaluations[0].outputs[n] for n in model.problem.outputs]
    assert len(content["quality"]["covered"]) == len(content["quality"]["levels"])


def test_a_problem_is_stated_in_full(model: Model) -> None:
    stated = problem_record(model.problem)
    stress, frequency, cost = stated["constraints"]
    assert (stress["low"], stress["high"], stress["nominal"], stress["limit"]) == (1.0, 9.0, 5.0, None)
    assert frequency["nominal"] == 4.0  # the middle of the range, where none is stated
    assert (cost["limit"], cost["nominal"]) == (40.0, None)
    assert stated["variables"][1]["type"] == "integer"
    assert units(model.problem)["mass"] == "kg"
    limits = ["c <= [0..1]", {"name": "top", "low": 2, "high": 3, "outputs": "c", "unit": "m"}]
    shared = Problem.from_dict({**valley().to_dict(), "constraints": limits})
    assert units(shared) == {"f": "", "c": "m"}


def test_modules_import_in_single_lines_and_share_no_names() -> None:
    names: dict[str, str] = {}
    for file, content in files().items():
        if not file.endswith(".js"):
            continue
        text = content.decode()
        for line in re.findall(r"^import .*$|^} from .*$", text, re.MULTILINE):
            assert re.fullmatch(r'import \{ [\w, ]+ \} from "\./\w+\.js";', line), f"{file}: {line}"
            assert re.search(r'"\./(\w+\.js)"', line)[1] in files()
        for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|class|function) (\w+)", text, re.MULTILINE):
            assert name not in names, f"{name} stands in {file} and in {names[name]}"
            names[name] = file


OF_THE_PAGE = {
    "surrogates.js": ["ABREAST", "ROUGH", "ADDITIVE"],
    "answers.js": ["VISIBLE"],
    "propose.js": ["SLICE", "TURN", "ALTERNATIVES", "ASKED", "NOT_FOLLOWED"],
    "stepwise.js": ["DIGITS"],
}
"""Numbers of presentation, codes and words; whatever else a module computes with comes from the document."""


@pytest.mark.parametrize(
    "name",
    [
        "answers.js",
        "library.js",
        "map.js",
        "problem.js",
        "propose.js",
        "quadratic.js",
        "requirements.js",
        "stepwise.js",
        "surrogates.js",
    ],
)
def test_numbers_shared_with_python_come_from_the_document(name: str) -> None:
    text = files()[name].decode()
    found = [n for line in re.findall(r"^(?:const|let) (.*?) =", text, re.MULTILINE) for n in re.findall(r"\w+", line)]
    assert found == OF_THE_PAGE.get(name, [])


def test_every_document_states_the_numbers_shared_with_python(model: Model) -> None:
    stated = document(model, "beam")["tuning"]
    assert stated == empty_document(model.problem, "beam", 0, ())["tuning"]
    assert stated["fast_map"]["corrections"] == list(library.TUNING.corrections)
    assert stated["programs"]["guesses"] == qp.GUESSES


def test_no_module_writes_html() -> None:
    for file, content in files().items():
        for word in (
            b"innerHTML",
            b"outerHTML",
            b"insertAdjacentHTML",
            b"document.write",
            b"eval(",
            b"Function(",
            b"https:",
        ):
            assert word not in content, f"{file} holds {word.decode()}"


def test_one_file_holds_everything_and_asks_for_nothing(model: Model) -> None:
    page = single_file(document(model, "beam"))
    assert "src=" not in page
    assert 'rel="stylesheet"' not in page
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_an_embedded_document_cannot_end_its_script() -> None:
    text = embedded({"name": "</script><!--<script>&"})
    assert not set(text) & set("<>&")
    assert json.loads(text) == {"name": "</script><!--<script>&"}


def test_a_large_study_stays_small() -> None:
    """Two hundred evaluations of eleven variables and eleven outputs, with the full network."""
    car = get("car")
    settings = QUICK.replace(horizon=1, inner_steps=1, hidden_width=256, hidden_layers=3)
    model = model_of(car.problem, car.evaluate, count=200, settings=settings)
    assert len(single_file(document(model, "car")).encode()) < 8_000_000
