"""The reference describes every public name once, and the docstrings agree with the signatures.

``python -m tests.docs.test_reference`` writes the help of the commands into their pages.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from html import unescape
from importlib import import_module
from pathlib import Path

import griffe
import pandas as pd
import pytest
import typer
from sklearn.base import BaseEstimator
from typer.cli import get_docs_for_click

import gammagmm
from gammagmm import GammaGMM, GammaThreshold, datasets, errors
from gammagmm.cli.main import app
from gammagmm.datasets import load_demo

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
GUIDE = re.compile(r"The pages? (.*) of the documentation")
QUOTED = re.compile(r'"([^"]+)"')
DIRECTIVE = re.compile(r"^::: gammagmm\.(\S+)\n((?:    .*\n)*)", re.MULTILINE)
COMMANDS = ("command-line.md", "command-line-more.md")
INTERNAL = {
    "Fit": {
        "answering",
        "answers",
        "answers_new",
        "check_flagged",
        "detector_columns",
        "digest",
        "rows_to_find",
        "frame",
        "frame_of",
        "group_shares",
        "grouped",
        "held",
        "held_by_number",
        "holding",
        "holding_first_rows",
        "monitor",
        "reasons",
        "told",
        "training_count",
        "usual_values",
        "with_labels",
        "with_table",
    },
    "History": {"changed_places", "check_fit", "starts"},
    "KnownRows": {"corrected", "numbered", "rows_left", "rows_outside_lists"},
    "LabelledRows": {
        "calibration",
        "cut_share",
        "found_in_order",
        "precision_of",
        "rows_left",
        "rows_outside_lists",
        "sample",
    },
    "MixturePrior": {"resolve", "resolve_covariance"},
}
"""Members that only other modules of the package call; the reference leaves them out."""


def resolve(path):
    """The object that ``gammagmm.PATH`` names."""
    thing = gammagmm
    for part in path.split("."):
        if inspect.ismodule(thing) and not hasattr(thing, part):
            thing = import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part)
    return thing


def own_members(cls):
    """Names of the public methods and properties that the package defines."""
    own = [c for c in cls.__mro__ if c.__module__.startswith("gammagmm")]
    names = {name for c in own for name, value in vars(c).items() if _is_member(value)}
    return {name for name in names if not name.startswith("_")}


def _is_member(value):
    kinds = (classmethod, staticmethod, property)
    return inspect.isfunction(value) or isinstance(value, kinds) or hasattr(value, "attrname")


def described():
    """Paths of everything that the reference describes, members of classes included."""
    found = []
    for page in sorted(REFERENCE.glob("*.md")):
        for path, options in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            found.append(path)
            thing = resolve(path)
            listed = re.search(r"members: (?:false|\[(.*)\])", options)
            if listed:
                names = re.findall(r"\w+", listed[1] or "")
            else:
                names = sorted(own_members(thing)) if inspect.isclass(thing) else []
            found += [f"{path}.{name}" for name in names]
    return found


PATHS = described()


def sections(thing):
    """Sections of the docstring by kind, as the documentation tool reads them."""
    docstring = griffe.Docstring(inspect.getdoc(thing) or "", parser="numpy")
    return {section.kind.value: section.value for section in docstring.parse(warnings=False)}


def entries(items):
    """Names and defaults of the entries of a section."""
    found = {}
    for item in items:
        _, _, default = str(item.annotation).partition(", default=")
        found[item.name] = getattr(item, "value", None) or default or None
    return found


def shown(default):
    """A default as a docstring writes it; None where there is none."""
    is_missing = default in (inspect.Parameter.empty, dataclasses.MISSING)
    return None if is_missing else re.sub("^'(.*)'$", r'"\1"', repr(default))


def signature_entries(function):
    """Names and defaults of the parameters, without self."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    return {
        stars.get(parameter.kind, "") + parameter.name: shown(parameter.default)
        for parameter in parameters
        if parameter.name not in ("self", "cls")
    }


def field_entries(cls):
    """Names and defaults of the fields of a dataclass."""
    found = {}
    for field in dataclasses.fields(cls):
        factory = field.default_factory
        found[field.name] = shown(field.default)
        if factory is not dataclasses.MISSING:
            found[field.name] = repr(factory()) if factory is dict else f"{factory.__qualname__}()"
    return found


def is_error(thing):
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def test_documented_parameters_and_defaults_are_those_of_the_signature():
    """Every function and class of the reference, since numpydoc knows no defaults and no fields."""
    wrong, n_checked = [], 0
    for path in PATHS:
        thing = resolve(path)
        if not callable(thing) or is_error(thing):
            continue
        n_checked += 1
        found = sections(thing)
        documented = entries(found.get("parameters", []))
        if dataclasses.is_dataclass(thing):
            documented |= entries(found.get("attributes", []))
            wanted, is_right = field_entries(thing), True
        else:
            wanted = signature_entries(thing)
            gives = getattr(thing, "__annotations__", {}).get("return", "None")
            is_right = inspect.isclass(thing) or ("returns" in found) == (gives != "None")
        if list(documented.items()) != list(wanted.items()) or not is_right:
            wrong.append(path)
    assert wrong == []
    assert n_checked > 50


FUNCTIONS = [p for p in PATHS if inspect.isfunction(resolve(p)) or inspect.ismethod(resolve(p))]


def test_every_public_name_is_described_once():
    public = [*gammagmm.__all__]
    public += [f"datasets.{name}" for name in datasets.__all__]
    public += [f"errors.{name}" for name in errors.__all__]
    assert set(public) <= set(PATHS)
    assert len(set(PATHS)) == len(PATHS)


def nav_titles(entries):
    """Titles of the pages in the navigation."""
    for entry in entries:
        for title, target in entry.items():
            yield from [title] if isinstance(target, str) else nav_titles(target)


def test_docstrings_point_to_pages_that_exist():
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    titles = set(nav_titles(config["project"]["nav"]))
    pointers = {path: GUIDE.findall(inspect.getdoc(resolve(path))) for path in PATHS}
    assert [name for name in gammagmm.__all__ if not pointers[name]] == []
    named = {
        title for found in pointers.values() for text in found for title in QUOTED.findall(text)
    }
    assert named <= titles


def test_every_public_member_is_described_or_internal():
    classes = [name for name in gammagmm.__all__ if inspect.isclass(resolve(name))]
    members = {f"{name}.{member}" for name in classes for member in own_members(resolve(name))}
    internal = {f"{name}.{member}" for name in INTERNAL for member in INTERNAL[name]}
    assert members - set(PATHS) == internal


def test_the_first_page_names_every_method_of_the_estimator_and_the_posterior():
    text = (REFERENCE / "index.md").read_text(encoding="utf-8")
    owners = ("GammaGMM.", "GammaPosterior.")
    names = [path.partition(".")[2] for path in FUNCTIONS if path.startswith(owners)]
    assert len(names) > 30
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("cls", [GammaGMM, GammaThreshold])
def test_every_fitted_attribute_is_described(cls):
    table = load_demo()
    estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    if cls is GammaGMM:
        fitted = estimator.fit(pd.DataFrame(table.X, columns=table.feature_names))
    else:
        estimator.fit(table.X)
        fitted = GammaThreshold(estimator).fit(estimator.decision_scores_)
    attributes = {name for name in vars(fitted) if name.endswith("_") and name[0] != "_"}
    assert set(entries(sections(cls)["attributes"])) == attributes


def test_what_estimators_inherit_from_scikit_learn_is_named():
    text = (REFERENCE / "fit-predict.md").read_text(encoding="utf-8")
    inherited = {name for name in dir(BaseEstimator) if not name.startswith("_")}
    assert all(f"`{name}`" in text for name in inherited - own_members(GammaGMM))


def command_help():
    """The help of all commands, as Typer writes it in Markdown."""
    group = typer.main.get_command(app)
    text = unescape(get_docs_for_click(obj=group, ctx=typer.Context(group), name="gammagmm"))
    for name, command in group.commands.items():
        # Typer cuts the sentences of the list of commands.
        first = command.help.partition("\n\n")[0].replace("\n", " ")
        text = re.sub(rf"^\* `{name}`: .*$", f"* `{name}`: {first}", text, flags=re.MULTILINE)
    return text


def help_lines(text):
    """The lines without those on usage, which versions of Typer write differently."""
    return [line for line in text.splitlines() if line and not line.startswith("$ ")]


def test_the_pages_on_the_command_line_are_its_help():
    pages = [(REFERENCE / name).read_text(encoding="utf-8") for name in COMMANDS]
    _, _, more = pages[1].partition("\n\n")
    assert help_lines(pages[0] + more) == help_lines(command_help())


def rewrite():
    """Write the current help of the commands into the pages."""
    text = command_help()
    split = text.index("## `gammagmm predict`")
    first, second = (REFERENCE / name for name in COMMANDS)
    title, _, _ = second.read_text(encoding="utf-8").partition("\n\n")
    first.write_text(text[:split].rstrip() + "\n", encoding="utf-8")
    second.write_text(f"{title}\n\n{text[split:].rstrip()}\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
