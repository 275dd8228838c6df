"""The explorer as a widget: what its JavaScript does in a browser, and what Python sees of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import Window, window
from browser import chromium as chromium
from cbabo import Model, Study
from cbabo.errors import InputError
from cbabo.surfaces import notebook
from cbabo.surfaces.notebook.file import ExplorerFile
from cbabo.surfaces.notebook.widget import ExplorerWidget
from learned import QUICK, model_of
from simulators import make_beam, simulate_beam

SCRIPT = (Path(notebook.__file__).parent / "widget.js").read_text(encoding="utf-8")
STAND_IN = """<!doctype html><meta charset="utf-8"><body><div id="one"></div><div id="two"></div>
<script>
  // What a notebook hands to a widget: values, their changes, and when they are sent to Python.
  class StandIn {
    constructor(values) { this.values = values; this.handlers = {}; this.sent = []; }
    get(name) { return this.values[name]; }
    set(name, value) {
      if (JSON.stringify(this.values[name]) === JSON.stringify(value)) return;
      this.values[name] = value;
      for (const handler of this.handlers[`change:${name}`] ?? []) handler();
    }
    save_changes() { this.sent.push({ limits: this.values.limits, probability: this.values.probability }); }
    on(event, handler) { (this.handlers[event] ??= []).push(handler); }
    off(event, handler) { this.handlers[event] = this.handlers[event].filter((other) => other !== handler); }
  }
  const show = async (script, values, id = "one") => {
    const { default: widget } = await import(script);
    window.model ??= new StandIn(values);
    window[`close_${id}`] = widget.render({ model: window.model, el: document.getElementById(id) });
  };
</script>"""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(make_beam(), simulate_beam, 24, QUICK)


@pytest.fixture
def widget(model: Model) -> ExplorerWidget:
    shown = model.explore({"stress": 4.0}, height=700)
    assert isinstance(shown, ExplorerWidget)
    return shown


@pytest.fixture
def shown(chromium: Browser, widget: ExplorerWidget) -> Iterator[Window]:
    """The widget in a browser, as a notebook would show it."""
    with window(chromium) as opened:
        opened.page.set_content(STAND_IN)
        values = {"page": widget.page, "limits": widget.limits, "height": widget.height, "probability": None}
        opened.page.evaluate(f"show({json.dumps(script())}, {json.dumps(values)})")
        opened.wait("model.sent.length > 0")
        yield opened


def script() -> str:
    return f"data:text/javascript;base64,{base64.b64encode(SCRIPT.encode()).decode()}"


def inside(opened: Window, number: int = 1) -> list[float]:
    found: list[float] = opened.page.frames[number].evaluate("explorer.state.thresholds")
    return found


def test_it_begins_with_the_limits_that_python_states(shown: Window) -> None:
    assert inside(shown) == [4.0, 4.0]
    assert shown.page.evaluate("model.sent.at(-1).limits") == {"stress": 4, "frequency": 4}
    assert shown.page.evaluate("document.querySelector('iframe').style.height") == "700px"
    shown.shot("widget")


def test_what_is_set_in_the_page_reaches_python(shown: Window, widget: ExplorerWidget) -> None:
    shown.page.frame_locator("iframe").get_by_role("slider").first.fill("6")
    shown.wait("model.sent.at(-1).limits.stress === 6")
    widget.set_state(shown.page.evaluate("model.sent.at(-1)"))  # as the notebook's kernel does
    assert widget.limits == {"stress": 6.0, "frequency": 4.0}
    assert widget.answer.thresholds == {"stress": 6.0, "frequency": 4.0}


def test_what_python_sets_reaches_the_page_once(shown: Window) -> None:
    count = shown.page.evaluate("model.sent.length")
    shown.page.evaluate("model.set('limits', { stress: 2.5, frequency: 3 })")
    shown.wait(f"model.sent.length === {count + 1}")
    assert inside(shown) == [2.5, 3.0]
    shown.page.wait_for_timeout(300)
    assert shown.page.evaluate("model.sent.length") == count + 1  # Nothing goes to and fro.
    shown.page.evaluate("model.set('height', 500)")
    assert shown.page.evaluate("document.querySelector('iframe').style.height") == "500px"


def test_two_views_of_a_widget_have_the_same_limits(shown: Window) -> None:
    shown.page.evaluate("model.set('limits', { stress: 2.5, frequency: 3 })")
    shown.page.evaluate(f"show({json.dumps(script())}, null, 'two')")
    shown.wait("document.querySelectorAll('iframe').length === 2")
    second = shown.page.frame_locator("iframe").nth(1)
    second.get_by_role("slider").first.wait_for()
    shown.page.wait_for_timeout(300)
    assert inside(shown, 2) == [2.5, 3.0]  # It does not put the nominal limits back.
    second.get_by_role("slider").first.fill("7")
    shown.wait("model.sent.at(-1).limits.stress === 7")
    shown.page.wait_for_timeout(300)
    assert inside(shown, 1) == [7.0, 3.0]


def test_messages_of_others_are_not_heard_and_a_closed_widget_hears_nothing(shown: Window) -> None:
    count = shown.page.evaluate("model.sent.length")
    shown.page.evaluate("postMessage({ cbabo: 'limits', thresholds: { stress: 1, frequency: 1 } }, '*')")
    shown.page.wait_for_timeout(200)
    assert shown.page.evaluate("model.sent.length") == count
    shown.page.evaluate("close_one()")
    shown.page.frame_locator("iframe").get_by_role("slider").first.fill("6")
    shown.page.wait_for_timeout(300)
    assert shown.page.evaluate("model.sent.length") == count


def test_limits_are_checked_and_those_left_out_stay(widget: ExplorerWidget) -> None:
    seen: list[dict[str, float]] = []
    widget.observe(lambda change: seen.append(change["new"]), "limits")
    widget.limits = {"frequency": 3}
    assert widget.limits == {"stress": 4.0, "frequency": 3.0} == seen[-1]
    with pytest.raises(InputError, match="unknown constraint 'mass'; expected stress, frequency"):
        widget.limits = {"mass": 3.0}
    with pytest.raises(InputError, match="frequency"):
        widget.limits = {"frequency": float("nan")}
    assert widget.limits == {"stress": 4.0, "frequency": 3.0}
    assert repr(widget) == "ExplorerWidget('beam', stress=4, frequency=3)"


def test_the_answer_is_the_models_and_made_once(widget: ExplorerWidget, model: Model) -> None:
    first = widget.answer
    assert first == model.predict({"stress": 4.0})
    assert widget.answer is first
    widget.limits = {"stress": 6.0}
    assert widget.answer == model.predict({"stress": 6.0})


def test_a_study_is_explored_under_its_own_name() -> None:
    study = Study.create(make_beam(), "sqlite://", name="beam of <b>steel</b>", settings=QUICK)
    study.run(simulate_beam, budget=12, in_process=True)
    found = study.explore()
    assert isinstance(found, ExplorerWidget)
    assert "beam of \\u003cb\\u003esteel" in found.page
    assert found.limits == study.problem.box.nominal


def test_with_a_path_it_is_a_file(model: Model, tmp_path: Path) -> None:
    found = model.explore({"stress": 4.5}, path=tmp_path / "beam.html")
    assert isinstance(found, ExplorerFile)
    assert found.path == tmp_path / "beam.html"
    assert found.url == f"{(tmp_path / 'beam.html').as_uri()}#at.stress=4.5&at.frequency=4.0"


def test_a_file_opens_at_its_limits_and_is_shown_in_a_frame(chromium: Browser, model: Model, tmp_path: Path) -> None:
    found = model.explore({"stress": 4.5}, path=tmp_path / "beam.html")
    with window(chromium, offline=True) as opened:
        opened.page.goto(found.url)
        opened.wait("window.explorer?.state.thresholds[0] === 4.5")
    with window(chromium) as opened:
        opened.page.set_content(found._repr_html_())
        opened.page.frame_locator("iframe").get_by_role("slider").first.wait_for()
        assert "pip install 'cbabo[notebook]'" in opened.text("p")
        opened.page.wait_for_timeout(300)
        assert inside(opened) == [4.5, 4.0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"height": 20}, "expected the height in pixels as a whole number from 100 on, got 20"),
        ({"limits": {"mass": 2.0}}, "unknown constraint 'mass'"),
        ({"path": "/nowhere/at/all.html"}, "cannot be written .*; choose another path"),
    ],
)
def test_wrong_arguments_get_a_sentence(model: Model, arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        model.explore(**arguments)  # type: ignore[arg-type]
