"""A base installation has no `bench`, `plot` or `notebook` extra: everything else works, and what needs one names it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

BENCH = ("botorch", "gpytorch", "linear_operator", "cma", "matplotlib", "optuna", "anywidget")
WITHOUT = f"""\
import importlib.metadata, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BENCH!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
installed = importlib.metadata.version
def version(name):
    if name in {BENCH!r}:
        raise importlib.metadata.PackageNotFoundError(name)
    return installed(name)
importlib.metadata.version = version
"""
STUDY = """\
import cbabo
study = cbabo.Study.create(
    cbabo.Problem("p", [cbabo.Real("x", 0, 1), cbabo.Real("y", 0, 1)], cbabo.Objective("f"), ["c <= [0.2..1]"]),
    "sqlite:///study.db",
    settings=cbabo.Settings.paper().replace(initial_evaluations=8, inner_steps=2, hidden_width=8, candidates=50),
)
def evaluate(point):
    return {"f": (point["x"] - 0.2) ** 2 + point["y"], "c": 1.0 - point["x"] * point["y"]}
"""


def without_bench(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a process that cannot import what the extra installs."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + textwrap.dedent(code)], cwd=folder, capture_output=True, text=True, check=False
    )


def command(words: str) -> str:
    return f"import sys; sys.argv = {['cbabo', *words.split()]!r}\nfrom cbabo.surfaces.cli import main; main()\n"


def test_a_study_runs_answers_and_is_read_again(tmp_path: Path) -> None:
    code = f"""{STUDY}
study.run(evaluate, budget=10)
assert {{"numpy", "torch"}} <= set(study.versions) and "botorch" not in study.versions, study.versions
model = study.model()
answer = model.predict({{"c": 0.8}})
model.save("model.cbabo")
assert cbabo.Model.load("model.cbabo").predict({{"c": 0.8}}).point == answer.point
from cbabo.errors import CbaboError
try:
    model.surrogates.to_botorch()
except CbaboError as error:
    print(error)
"""
    done = without_bench(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "to_botorch needs botorch, which is missing; install it by: pip install 'cbabo[bench]'\n"
    status = without_bench(command("status sqlite:///study.db::p"), tmp_path)
    assert (status.returncode, status.stderr) == (0, "")
    assert "10" in status.stdout


COMMANDS = """
import contextlib, io, json
from cbabo.surfaces.cli import main

ended = []
for words in ("plan smoke.yaml", "run smoke.yaml", "table maps", "figure win_rates", "--help"):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["cbabo", "--help"] if words == "--help" else ["cbabo", "bench", *words.split()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ending:
            ended.append((words, ending.code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


def test_every_bench_command_names_the_extra_and_help_lists_it_all_the_same(tmp_path: Path) -> None:
    done = without_bench(COMMANDS, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    *commands, (_, code, shown, _) = json.loads(done.stdout)
    assert len(commands) == 4
    sentence = "cbabo: bench needs botorch, which is missing; install it by: pip install 'cbabo[bench]'\n"
    for words, *ended in commands:
        assert ended == [2, "", sentence], words
    assert not code
    assert "bench" in shown


PLOTS = f"""{STUDY}
study.run(evaluate, budget=10)
model = study.model()
from cbabo.errors import MissingExtraError
answer = model.predict()
for draw in (answer.plot, lambda: model.plot_tradeoff("c"), model.plot_map, model.plot_quality):
    try:
        draw()
    except MissingExtraError as error:
        print(error)
"""


def test_figures_name_their_extra(tmp_path: Path) -> None:
    done = without_bench(PLOTS, tmp_path)
    assert done.returncode == 0, done.stderr
    named = [
        line.removesuffix(" needs matplotlib, which is missing; install it by: pip install 'cbabo[plot]'")
        for line in done.stdout.splitlines()
    ]
    assert named == ["plot", "plot_tradeoff", "plot_map", "plot_quality"]


EXPLORER = f"""{STUDY}
study.run(evaluate, budget=10)
from cbabo.errors import MissingExtraError
shown = study.explore({{"c": 0.7}})
assert shown.path.read_text(encoding="utf-8") == shown.page, shown.path
assert shown.url.endswith("p.html#at.c=0.7"), shown.url
assert "anywidget" in shown._repr_html_() and "<iframe" in shown._repr_html_()
print(repr(shown))
try:
    shown.limits
except MissingExtraError as error:
    print(error)
"""


def test_without_anywidget_the_explorer_is_a_file_and_says_how_to_get_the_widget(tmp_path: Path) -> None:
    done = without_bench(EXPLORER, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("Explorer written to ")
    for line in (first, second):
        assert line.endswith("install anywidget: pip install 'cbabo[notebook]'")


ALLOWED = {
    "display/plots": {"matplotlib"},
    "surfaces/notebook/widget.py": {"anywidget"},
    "adapters/optuna.py": {"optuna"},
}
"""Where an optional package may be imported, besides the benchmark."""


def test_only_the_benchmark_and_stated_places_import_what_is_optional() -> None:
    """So that no other part can come to need it unnoticed."""
    import ast

    source = Path(__file__).parent.parent / "src" / "cbabo"
    for path in source.rglob("*.py"):
        inside = path.relative_to(source)
        if inside.parts[0] == "bench" or inside == Path("surrogate/botorch.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {
            id(node)
            for block in tree.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in ast.walk(block)
        }
        for node in ast.walk(tree):
            if id(node) in typing_only:
                continue
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            used = {name.split(".")[0] for name in names} & set(BENCH)
            allowed = (found for place, found in ALLOWED.items() if inside.as_posix().startswith(place))
            assert used <= set().union(*allowed), inside
