"""Defaults of options from gammagmm.toml and pyproject.toml."""

from __future__ import annotations

import json

import pytest
from typer.main import get_command

from gammagmm.cli.main import app
from gammagmm.cli.settings import SettingsError, defaults_of
from tests.support.command_line import gammagmm_here

COMMANDS = get_command(app).commands


def settings(command="estimate", config=None):
    return defaults_of(command, COMMANDS, config)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_of_a_command_goes_before_the_keys_of_all(folder):
    (folder / "gammagmm.toml").write_text(
        'seed = 4\nruns = 3\ndrop = "a"\np0 = 1\n'
        "[estimate]\nruns = 5\njson = true\n[label]\nn = 9\n"
    )
    found = settings()
    assert found.values == {"seed": 4, "runs": 5, "drop": ["a"], "p0": 1, "as_json": True}
    assert settings("label").values == {"seed": 4, "runs": 3, "drop": ["a"], "p0": 1, "n": 9}
    assert settings("demo").values == {"seed": 4}
    assert settings(config="none").values == {}
    (note,) = found.used({"seed": 4, "runs": 2, "drop": ["a"], "as_json": True}).notes
    assert {name: getattr(note, name) for name in ("step", "subject", "message")} == {
        "step": "settings",
        "subject": "gammagmm.toml",
        "message": 'sets seed = 4, drop = "a", json = true',
    }
    assert found.used({}).notes == ()


def test_the_own_file_goes_before_the_project(folder):
    project = folder / "pyproject.toml"
    project.write_text("not TOML, and no word about us")
    assert settings().values == {}
    project.write_text("[tool.gammagmm]\nseed = 2\n[tool.gammagmm.estimate]\nlearn = false\n")
    assert settings().values == {"seed": 2, "learn": False}
    (folder / "gammagmm.toml").write_text("seed = 3")
    assert settings().values == {"seed": 3}
    assert settings(config="pyproject.toml").values == {"seed": 2, "learn": False}


@pytest.mark.parametrize(
    ("text", "what", "todo"),
    [
        ("rums = 2", "there is no option 'rums'", "Similar ones: runs"),
        ("[estimate]\np_high = 0.2", "there is no option 'estimate.p_high'", "ones: p-high"),
        ("[label]\nreport = 'r.html'", "label.report cannot be set in a file", "--report"),
        ("[estimat]\nruns = 2", "there is no command 'estimat'", "Similar ones: estimate"),
        ("[compare]\njson = true", "there is no command 'compare'", "The commands are estimate, "),
        ("runs = true", "runs = 'True': ", "Correct the file"),
        ("runs = 1.5", r"runs = '1\.5': ", ""),
        ("p0 = 'x'", "p0 = 'x': ", ""),
        ("json = 7", "json = '7': ", ""),
        ("id = ['a']", "id must be a single value", ""),
        ("id = 2026-01-01", "id must be a single value", ""),
        ("drop = [{a = 1}]", "drop must be a single value", ""),
        ("[estimate]\nscale = 'x'", r"estimate\.scale = 'x': must be standard, robust or none", ""),
        (f"runs = '{'9' * 999}x'", "runs = '9{92}: ", ""),
        ("force = true", "force cannot be set in a file", "Pass --force on the command line"),
        ("[monitor]\npicture = 'p.png'", "monitor.picture cannot be set in a file", "--picture"),
        ("scheduler = 'tcp://x'", "scheduler cannot be set in a file", ""),
        ("runs =", "is not a TOML file", "--config none"),
        (f"runs = {'[' * 9999}", "is not a TOML file", ""),
        ("'estimate.runs' = 2", "there is no option 'estimate.runs'", ""),
        ("\udcff", "is not a TOML file", ""),
        ("#" * 1_000_001, "is larger than 1,000,000 bytes", ""),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(text, what, todo, folder):
    (folder / "my.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsError, match=f"^my.toml.*{what}") as caught:
        settings(config="my.toml")
    assert todo in caught.value.todo != ""


def test_files_that_are_not_there_or_no_tables(folder):
    with pytest.raises(SettingsError, match=r"my\.toml cannot be read"):
        settings(config="my.toml")
    (folder / "pyproject.toml").write_text("[tool]\ngammagmm = 5")
    with pytest.raises(SettingsError, match=r"tool\.gammagmm must be a table"):
        settings()


def test_the_command_uses_tells_and_overrides_them(folder, table):
    (folder / "gammagmm.toml").write_text(
        'detectors = "KNN,LOF"\nruns = 2\njobs = 1\n[estimate]\njson = true\nscale = "robust"\n'
    )
    done = gammagmm_here("estimate", table, "--runs", 3, cwd=folder)
    assert done.returncode == 0, done.stderr
    told = 'sets detectors = "KNN,LOF", jobs = 1, json = true, scale = "robust"'
    assert done.stderr.splitlines()[0] == f"note: gammagmm.toml: {told}"
    answer = json.loads(done.stdout)
    assert [each["name"] for each in answer["detectors"]] == ["KNN", "LOF"]
    note = {"step": "settings", "subject": "gammagmm.toml", "message": told}
    assert answer["notes"][0].items() >= note.items()


def test_an_error_in_the_settings_is_two_lines(folder, table):
    (folder / "gammagmm.toml").write_text("runs = 'many'\nforce = true")
    done = gammagmm_here("estimate", table, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    what, todo = done.stderr.splitlines()
    assert what.startswith("gammagmm: gammagmm.toml: runs = 'many': ")
    assert todo == "  Correct the file."


WRITING = ("out", "report", "picture", "posterior", "save", "history")
HOSTILE = [f"{key} = '../victim'" for key in WRITING]


@pytest.mark.parametrize("line", HOSTILE)
@pytest.mark.parametrize("command", ["estimate", "monitor"])
def test_a_file_with_settings_writes_nothing(command, line, folder):
    place = folder / "inside"
    place.mkdir()
    (folder / "victim").write_text("mine")
    (place / "link").symlink_to(folder / "victim")
    before = sorted(folder.rglob("*"))
    for text in (line, f"[{command}]\n{line}", f"[{command}]\njson = true\n{line}\nforce = true"):
        path = place / "gammagmm.toml"
        path.write_text(text)
        with pytest.raises(SettingsError) as caught:
            settings(command, str(path))
        assert str(path) in caught.value.what
        assert f"--{line.split()[0]}" in caught.value.todo or "force" in caught.value.what
        path.unlink()
    assert sorted(folder.rglob("*")) == before
    assert (folder / "victim").read_text() == "mine"


def test_the_command_itself_writes_nothing_for_hostile_settings(folder, table):
    (folder / "inside").mkdir()
    for line in HOSTILE[:2]:
        (folder / "inside" / "gammagmm.toml").write_text(line)
        done = gammagmm_here("estimate", table, cwd=folder / "inside")
        assert (done.returncode, done.stdout) == (2, "")
        assert "cannot be set in a file" in done.stderr
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["gammagmm.toml"]
