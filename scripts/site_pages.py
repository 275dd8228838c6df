"""The generated pages of the documentation site, as Markdown.

The reference of the command line comes from the help of every command, that of the study file from its JSON Schema, that of the
REST interface from its OpenAPI description, and that of Python from docstrings, which Sphinx reads. They are made whenever the
site is built, so that no page can be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import typer
from typer.testing import CliRunner

from cbabo import Problem, Real, Study
from cbabo.surfaces.cli import app
from cbabo.surfaces.cli.examples import STUDY
from cbabo.surfaces.studyfile import json_schema
from cbabo.surfaces.web.app import openapi

COLUMNS = "80"
"""Width of the help of commands."""
SECTIONS = {
    "Problem": "The section `problem`",
    "Real": "A variable of type `real`",
    "Integer": "A variable of type `integer`",
    "Discrete": "A variable of type `discrete`",
    "Categorical": "A variable of type `categorical`",
    "Objective": "The objective",
    "Constraint": "A constraint",
    "EvaluatorSpec": "The section `evaluator`",
    "StudySection": "The section `study`",
    "DefaultSettings": "`settings` of the default method",
    "PaperSettings": "`settings` of the paper's method",
}
"""The parts of a study file in the order of the page; a part that is not named here follows at the end."""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield every command and every group of commands, in the order of the help."""
    yield from _below(typer.main.get_command(app), ())


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield (*words, name)
            yield from _below(child, (*words, name))


def command_line() -> str:
    """Return the page of the command line: the help of every command as it is printed."""
    text = """# Command line

This page is generated from `cbabo COMMAND --help`. Most commands take a `STUDY`: the YAML file of a study, or `URL::name` for a
study in a database, such as `sqlite:///truss.db::truss`.

Exit codes: 0 success, 1 failure, 2 invalid input or a missing optional package, 130 interrupted by Ctrl-C. An error message is
one sentence on standard error.
"""
    text += f"\n## cbabo\n\n{_block('text', help_of())}\n"
    for words in commands():
        text += f"\n## cbabo {' '.join(words)}\n\n{_block('text', help_of(*words))}\n"
    return text


def help_of(*words: str) -> str:
    """Return what `cbabo WORDS --help` prints."""
    ran = CliRunner().invoke(
        app, [*words, "--help"], prog_name="cbabo", env={"COLUMNS": COLUMNS, "TERMINAL_WIDTH": COLUMNS}
    )
    if ran.exit_code != 0:
        raise RuntimeError(f"cbabo {' '.join(words)} --help: {ran.output}")
    return ran.output.strip()


def study_file() -> str:
    """Return the page of the study file: a table of keys for each part of its JSON Schema."""
    schema = json_schema()
    parts = schema["$defs"]
    text = f"""# Study file

A study file is written in YAML and has three sections: `problem`, `evaluator` and `study`. This page is generated from its JSON
Schema, which `cbabo check --schema` prints, and which is also [a file of this site](../study.schema.json). An editor that
supports JSON Schema completes and checks the file while you type. `cbabo check FILE` validates a file, and `--set path=value`
changes one value of it for one command.

`cbabo init` writes this commented example:

{_block("yaml", STUDY.rstrip())}

## The file

{_table(schema)}
"""
    for name in [*SECTIONS, *sorted(set(parts) - set(SECTIONS))]:
        part = parts[name]
        text += f"\n## {SECTIONS.get(name, name)}\n\n{_plain(part.get('description', ''))}\n\n{_table(part)}\n"
        if name == "Objective":
            text += "\nIn short: `minimize mass [kg]` or `maximize range [km]`.\n"
        if name == "Constraint":
            text += (
                "\nIn short: `stress <= [80..250] MPa` has a movable limit, `mass <= 12 kg` a fixed one, and "
                "`frequency >= [20..60] Hz` a movable lower limit.\n"
            )
    return text


def rest() -> str:
    """Return the page of the REST interface: every route and every schema of its OpenAPI description."""
    bar = Problem("beam", [Real("height", 40, 200)], "mass", ["stress <= [80..250] MPa", "deflection <= [2..10] mm"])
    described = openapi(Study.create(bar, "sqlite://"))
    schemes = described["components"]["schemas"]
    text = """# REST interface

`cbabo serve STUDY` answers these requests. This page is generated from the OpenAPI description of the server, which
`GET /api/openapi.json` returns; the names of limits are those of an example with the limits `stress` and `deflection`.
[The explorer](../explorer.md#over-http) describes tokens, the limits on requests, and security.

A request that needs the token has the header `Authorization: Bearer TOKEN`. An error is a JSON object
`{"error": "one sentence"}`.

"""
    shared = set.intersection(*(set(route["responses"]) for of in described["paths"].values() for route in of.values()))
    routes = [(path, method, route) for path, of in described["paths"].items() for method, route in of.items()]
    rows = [
        [
            f"[`{method.upper()} {path}`](#{anchor(f'{method} {path}')})",
            route["description"],
            "yes" if "security" in route else "",
        ]
        for path, method, route in routes
    ]
    text += _rows(["request", "what it does", "needs the token"], rows)
    text += "\n## Errors of every request\n\n"
    responses = routes[0][2]["responses"]
    text += _rows(["status", "meaning"], [[status, responses[status]["description"]] for status in sorted(shared)])
    for path, method, route in routes:
        text += f"\n## {method.upper()} {path}\n\n{route['description']}\n\n"
        if "security" in route:
            text += "Needs the token.\n\n"
        for parameter in route.get("parameters", []):
            text += f"Parameter `{parameter['name']}`: {_type(parameter['schema'])}.\n\n"
        if "requestBody" in route:
            text += f"Body: {_type(_json(route['requestBody']))}.\n\n"
        answers = []
        for status, answer in route["responses"].items():
            if status in shared:
                continue
            told = "Success." if answer["description"] == "Successful Response" else answer["description"]
            answers.append([status, told, _type(_json(answer)) if "content" in answer else ""])
        text += _rows(["status", "meaning", "content"], answers)
    text += "\n## Schemas\n"
    for name in sorted(schemes):
        part = schemes[name]
        text += f"\n### {name}\n\n{_plain(part.get('description', ''))}\n\n{_table(part)}\n"
    return text


def _json(of: Mapping[str, Any]) -> Mapping[str, Any]:
    return of["content"]["application/json"]["schema"]  # type: ignore[no-any-return]


def anchor(heading: str) -> str:
    """Return the name under which GitHub and the site link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _table(part: Mapping[str, Any]) -> str:
    """Return the keys of a schema as a table, or its type where it has no keys."""
    if "properties" not in part:
        return f"{_type(part)}\n"
    required = set(part.get("required", []))
    rows = []
    for key, value in part["properties"].items():
        default = "required" if key in required else f"`{_literal(value['default'])}`" if "default" in value else ""
        rows.append([f"`{key}`", _type(value), default, _plain(value.get("description", ""))])
    return _rows(["key", "type", "default", "meaning"], rows)


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words, with links to the parts that it is made of."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{anchor(SECTIONS.get(name, name))})"
    if "const" in schema:
        return f"`{_literal(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{_literal(value)}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    kind = schema.get("type", "anything")
    if kind == "array":
        if "prefixItems" in schema:
            return (
                f"list of {len(schema['prefixItems'])} values: {', '.join(_type(one) for one in schema['prefixItems'])}"
            )
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if kind == "object":
        if schema.get("properties"):
            return f"mapping with the keys {', '.join(f'`{key}`' for key in schema['properties'])}"
        values = schema.get("additionalProperties")
        return f"mapping of names to {_type(values)}" if isinstance(values, Mapping) and values else "mapping"
    return {"string": "text", "boolean": "true or false"}.get(kind, kind) + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    stated = [f"{word} {schema[key]:g}" for key, word in words.items() if key in schema]
    return f" ({', '.join(stated)})" if stated else ""


def _literal(value: Any) -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value)) if value != "" else '""'


def _plain(text: str) -> str:
    """Return text as Markdown that shows every character outside backquotes as it is."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<\[\]\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _rows(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _block(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"


def _python(title: str, words: str, headings: Mapping[str, Mapping[str, str | None]]) -> str:
    """Return a page of the Python reference; fields that a study file has too are a table, as on its page."""
    text = f"# {title}\n\n{words}\n"
    parts = json_schema()["$defs"]
    for heading, classes in headings.items():
        text += f"\n## {heading}\n"
        for name, members in classes.items():
            shown = ":no-members:" if members is None else f":members: {members}"
            text += f"\n```{{eval-rst}}\n.. autoclass:: {name}\n   {shown}\n```\n"
            part = parts.get(name.rpartition(".")[2])
            if part is not None:
                text += f"\nFields:\n\n{_table(part)}".replace("](#", "](study-file.md#")
    return text


PYTHON: dict[str, tuple[str, str, dict[str, dict[str, str | None]]]] = {
    "problems": (
        "Python: problems",
        "A problem has variables, one objective and constraints. These classes are imported from `cbabo`.",
        {
            "Problems": {
                "cbabo.Problem": "from_file, from_dict, to_dict, to_yaml, json_schema, outputs, box",
                "cbabo.Objective": "sign",
                "cbabo.Constraint": "movable, strictest, most_relaxed",
            },
            "Variables": {
                "cbabo.Real": None,
                "cbabo.Integer": None,
                "cbabo.Discrete": None,
                "cbabo.Categorical": None,
            },
        },
    ),
    "studies": (
        "Python: studies",
        "A study holds the evaluations of one problem, in a database. `Study`, `Settings` and `EvaluationError` are "
        "imported from `cbabo`; the other classes are what the methods of a study return.",
        {
            "Studies": {"cbabo.Study": ""},
            "Settings": {
                "cbabo.Settings": "default, paper, from_dict, to_dict, replace",
                "cbabo.methods.settings.DefaultSettings": None,
                "cbabo.methods.settings.PaperSettings": None,
            },
            "Evaluations": {
                "cbabo.domain.evaluations.Evaluations": "complete, failed, running, excluded, requested, best, to_frame",
                "cbabo.domain.evaluations.Evaluation": "",
                "cbabo.domain.evaluations.Trial": "",
            },
            "Convergence, audits and decisions": {
                "cbabo.domain.convergence.Convergence": "",
                "cbabo.domain.audits.Audit": "",
                "cbabo.study.ledger.Decisions": "",
                "cbabo.study.ledger.Decision": "",
            },
            "Study files": {"cbabo.surfaces.studyfile.StudyFile": "read, storage, name, create, open, simulator"},
            "Errors": {"cbabo.EvaluationError": "", "cbabo.errors.CbaboError": ""},
        },
    ),
    "models": (
        "Python: models and answers",
        "A model answers limits from the evaluations of a study. `Model`, `Answer`, `Price`, `Recommendation` and `Conflict` are "
        "imported from `cbabo`; the other classes are parts of what they return.",
        {
            "Models": {"cbabo.Model": ""},
            "Answers": {"cbabo.Answer": "", "cbabo.answering.answers.Estimate": "", "cbabo.Price": ""},
            "Recommendations and conflicts": {"cbabo.Recommendation": "", "cbabo.Conflict": ""},
        },
    ),
}
"""The pages of the Python reference: title, introduction, and the classes under each heading with their members: all of them if
the text is empty, no one for None."""
GENERATED: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_line,
    "reference/study-file.md": study_file,
    "reference/rest.md": rest,
    **{f"reference/{name}.md": partial(_python, *page) for name, page in PYTHON.items()},
}
"""For every generated page, what makes it."""
