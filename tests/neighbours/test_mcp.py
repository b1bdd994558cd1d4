"""The MCP server answers its SDK's own client over standard input and output."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import anyio
import numpy as np
import psutil
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from gammagmm.datasets import load_demo

COMMAND = [sys.executable, "-m", "gammagmm.cli.main"]


def run_command(*arguments, folder):
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def near(values):
    """Equal up to rounding: variables that the client does not pass on can change that of BLAS."""
    return pytest.approx(values, rel=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, one with a column of text, a kept fit and a link out of the folder.

    Two copies of the table have names that look like options.
    """
    folder = tmp_path_factory.mktemp("tables") / "inside"
    folder.mkdir()
    data = load_demo()
    for name, kinds in (("rows.csv", None), ("text.csv", "ab")):
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*data.feature_names, *(["kind"] if kinds else [])])
            for i, row in enumerate(data.X):
                writer.writerow([*row.tolist(), *([kinds[i % 2]] if kinds else [])])
    run_command("estimate", "rows.csv", "--save", "rows", "--detectors", "fast", folder=folder)
    for name in ("-rows.csv", "--help"):
        (folder / name).write_text((folder / "rows.csv").read_text())
    (folder.parent / "secret.csv").write_text((folder / "rows.csv").read_text())
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    return folder


def server_of(folder):
    command, *arguments = *COMMAND, "mcp", str(folder)
    return StdioServerParameters(command=command, args=arguments)


@pytest.fixture(scope="module")
def ask(folder):
    """Function that calls tools in one session: their results, and what the server said."""

    def ask(*calls):
        async def session():
            async with Client(stdio_client(server_of(folder))) as client:
                tools = (await client.list_tools()).tools
                results = [await client.call_tool(name, arguments) for name, arguments in calls]
                return client.instructions, tools, results

        return anyio.run(session)

    return ask


@pytest.fixture(scope="module")
def answers(ask):
    return ask(
        ("columns", {"path": "rows.csv"}),
        ("estimate", {"path": "rows.csv"}),
        ("predict", {"fit": "rows.fit", "path": "rows.csv"}),
    )


def test_the_tools_only_read_and_the_instructions_ask_for_the_evidence(answers):
    instructions, tools, _ = answers
    assert [tool.name for tool in tools] == ["columns", "estimate", "rows_to_label", "predict"]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert "lines" in instructions


def test_the_answers_are_those_of_the_command_line(answers, folder):
    columns, estimate, predict = answers[2]
    text = run_command("estimate", "rows.csv", "--columns", folder=folder)
    assert columns.content[0].text == text
    found = estimate.structured_content
    expected = json.loads(run_command("estimate", "rows.csv", "--json", folder=folder))
    assert found.keys() == expected.keys()
    assert found["flagged_rows"] == expected["flagged_rows"]
    *lines, following = found["lines"]
    own = following.replace(" ./rows.csv --missing impute", " rows.csv")  # what the server passes
    assert [*lines, own] == expected["lines"]
    assert found["posterior"]["model_range"] == near(expected["posterior"]["model_range"])
    found = predict.structured_content["flagged"]
    text = run_command("predict", "rows", "rows.csv", "--json", folder=folder)
    expected = json.loads(text)["flagged"]
    assert [row["reason"] for row in found] == [row["reason"] for row in expected]
    assert [row["score"] for row in found] == near([row["score"] for row in expected])


def test_a_name_that_looks_like_an_option_is_that_of_a_file(ask, answers):
    _, _, [dashed, bare] = ask(("columns", {"path": "-rows.csv"}), ("columns", {"path": "--help"}))
    expected = answers[2][0].content[0].text
    assert dashed.content[0].text == expected.replace("rows.csv", "-rows.csv")
    assert "usage:" not in bare.content[0].text
    assert "--help" in bare.content[0].text


def test_labels_of_the_chosen_rows_change_the_estimate(ask, folder):
    before = sorted(folder.iterdir())
    _, _, [sheet] = ask(("rows_to_label", {"path": "text.csv", "n": 20, "drop": ["kind"]}))
    assert sorted(folder.iterdir()) == before  # nothing is written
    rows = list(csv.DictReader(sheet.content[0].text.splitlines()))
    assert len(rows) == 20
    assert {row["anomaly"] for row in rows} == {""}
    truth = load_demo().y
    with (folder / "labelled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"anomaly": truth[int(row["row"]) - 1]} for row in rows)
    arguments = {"path": "text.csv", "drop": ["kind"], "labels": "labelled.csv"}
    _, _, [estimate] = ask(("estimate", arguments))
    assert estimate.structured_content["labels"]["n_rows"] == 20
    assert estimate.structured_content["posterior"]["n_labels"] == 20


def test_errors_are_messages_of_the_tools(ask):
    _, _, results = ask(
        ("estimate", {"path": "text.csv", "drop": ["nothing"]}),
        ("estimate", {"path": "no.csv"}),
        ("estimate", {"path": "../secret.csv"}),
        ("estimate", {"path": "link.csv"}),
        ("estimate", {"path": "*.csv"}),
        ("estimate", {"path": "--version"}),
        ("columns", {"path": "a\0b"}),
        ("columns", {"path": "x" * 5000}),
        ("rows_to_label", {"path": "rows.csv", "n": 0}),
        ("predict", {"fit": "rows.csv", "path": "rows.csv"}),
    )
    assert all(result.is_error for result in results)
    text, *outside, none, fit = (result.content[0].text for result in results)
    assert "'nothing'" in text
    for message in outside:
        assert "There is no file " in message
        assert "in the folder of this server" in message
    assert "--n must be at least 1, got 0." in none
    assert "rows.csv" in fit


def test_a_call_that_is_cancelled_ends_its_processes(folder):
    name = "cancelled.npy"
    np.save(folder / name, np.random.default_rng(0).normal(size=(50_000, 20)))

    def running():
        """Processes with the file among their arguments."""
        infos = (process.info for process in psutil.process_iter(["cmdline"]))
        return [info for info in infos if f"./{name}" in (info["cmdline"] or ())]

    async def wait_until(is_met):
        with anyio.fail_after(60):
            while not is_met():
                await anyio.sleep(0.1)

    async def session():
        async with (
            Client(stdio_client(server_of(folder))) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.call_tool, "estimate", {"path": name})
            await wait_until(lambda: len(running()) >= 2)  # the command and its child
            group.cancel_scope.cancel()
        await wait_until(lambda: not running())

    anyio.run(session)
