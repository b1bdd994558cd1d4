"""Options are declared once: the commands and the estimator agree on names and defaults."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from gammagmm import GammaGMM
from gammagmm.cli import options
from gammagmm.cli.main import app
from gammagmm.cli.options import Method, with_options

GROUPS = [
    group
    for name in options.__all__
    if is_dataclass(group := getattr(options, name)) and name != "Request"
]


@dataclass(frozen=True)
class Shape:
    sides: Annotated[int, typer.Argument()]
    name: Annotated[str, typer.Option()] = "square"
    is_filled: Annotated[bool, typer.Option("--filled")] = False


@dataclass(frozen=True)
class Place:
    x: Annotated[float, typer.Option()] = 1.5
    y: Annotated[float, typer.Option()] = 2.5


def run(command, *arguments):
    """What a command of these groups was called with."""
    app, called = typer.Typer(), []

    def call(shape: Shape, place: command) -> None:
        """Draw a shape."""
        called.append((shape, place))

    call.__annotations__ = {"shape": Shape, "place": command}
    app.command()(with_options(call))
    done = CliRunner().invoke(app, list(arguments))
    return done, called


def test_a_command_gets_groups_with_the_values_that_were_given():
    done, called = run(Place, "4", "--filled", "--y", "7")
    assert done.exit_code == 0, done.output
    assert called == [(Shape(4, "square", True), Place(1.5, 7.0))]


def test_a_command_may_have_some_options_of_a_group():
    done, called = run(Annotated[Place, "y"], "4", "--y", "7")
    assert called == [(Shape(4), Place(y=7.0))]
    done, called = run(Annotated[Place, "y"], "4", "--x", "7")
    assert (done.exit_code, called) == (2, [])


def test_help_has_the_order_of_the_groups():
    done, _ = run(Place, "--help")
    assert done.output.index("--name") < done.output.index("--filled") < done.output.index("--x")


@pytest.mark.parametrize("command", [each.callback.__name__ for each in app.registered_commands])
def test_help_is_grouped_and_has_plain_types(command):
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line.split("─")[1].strip() for line in lines if line.startswith("╭")]
    assert "Options" not in headings
    assert headings[-1] == "Running"
    assert len(headings) == len(set(headings))
    words = set(done.output.replace("<", " < ").split())
    assert not {"<", "TEXT", "INTEGER", "FLOAT", "BOOLEAN"} & words


def test_the_values_of_a_choice_are_shown_and_completed():
    done = CliRunner().invoke(app, ["estimate", "--help"], env={"COLUMNS": "120"})
    assert "standard|robust|none" in done.output
    environment = {
        "_GAMMAGMM_COMPLETE": "complete_bash",
        "COMP_WORDS": "gammagmm estimate --scale r",
        "COMP_CWORD": "3",
    }
    done = CliRunner().invoke(app, prog_name="gammagmm", env=environment)
    assert done.output.split() == ["robust"]


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_a_heading(group):
    assert group.panel


def test_no_option_is_declared_twice():
    names = [field.name for group in GROUPS for field in fields(group)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_is_in_a_command_and_has_a_help_text(group):
    hints = inspect.get_annotations(group, eval_str=True)
    used = {
        name for c in app.registered_commands for name in inspect.signature(c.callback).parameters
    }
    for field in fields(group):
        assert field.name in used
        assert hints[field.name].__metadata__[0].help.endswith(".")


def test_defaults_are_those_of_the_estimator():
    parameters = GammaGMM().get_params()
    ours = dict(vars(Method()))
    ours["n_runs"] = ours.pop("runs")
    del ours["seed"], ours["jobs"]  # the command line is reproducible, and uses all cores
    assert ours == {name: parameters[name] for name in ours}
