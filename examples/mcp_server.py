"""An MCP server: assistants ask for the share of anomalies in the files of one folder.

Start it with ``python mcp_server.py FOLDER``. It reads files in FOLDER and changes none.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
COMMAND = [sys.executable, "-P", "-m", "gammagmm.cli.main"]

server = MCPServer(
    "gammagmm",
    instructions="Estimates what share of the unlabelled rows of a table are anomalies. Without "
    "labels the share is not known: report the model range and the sentences in lines "
    "together with the share, and never the share alone. If the decision matters, "
    "let a person label the rows of rows_to_label and pass the sheet to estimate.",
    log_level="WARNING",
)


def inside(name: str) -> str:
    """The path of a file in the folder, seen from there; links must not lead out of it."""
    try:
        path = (FOLDER / name).resolve()
        is_inside = path.is_relative_to(FOLDER) and path.is_file()
    except (OSError, ValueError):  # no file can have this name
        is_inside = False
    if not is_inside:
        raise ToolError(f"There is no file {name[:100]} in the folder of this server.")
    return f"./{path.relative_to(FOLDER).as_posix()}"  # a name that starts with - is no option


async def gammagmm(command: str, *arguments: str) -> str:
    """The output of the command; its message is the error of the tool."""
    # A process of its own: what libraries print does not disturb the protocol.
    command_line = [*COMMAND, command, *arguments, "--config", "none", "--quiet"]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
        process = await anyio.open_process(command_line, cwd=FOLDER, **streams)
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:  # the call was cancelled
                process.terminate()
        stream = output if code == 0 else errors
        stream.seek(0)
        text = stream.read().decode()
    if code != 0:
        raise ToolError(text.strip())
    return text


def prepared(missing: str, drop: list[str]) -> list[str]:
    """Options of the command: how the columns are prepared."""
    options = ["--missing", missing]
    return [*options, f"--drop={','.join(drop)}"] if drop else options


@server.tool(annotations=READS)
async def columns(path: str) -> str:
    """Show what each column of a table is taken for, and what has to be corrected, without a fit.

    Call it first. path: a CSV, Excel, SQLite, Parquet, JSON, ARFF, MAT or NumPy file.
    """
    return await gammagmm("estimate", inside(path), "--columns")


@server.tool(annotations=READS)
async def estimate(
    path: str,
    missing: Literal["drop", "impute"] = "impute",
    drop: list[str] | None = None,
    labels: str | None = None,
) -> dict[str, Any]:
    """Estimate the share of anomalies, with what is known of it, and the flagged rows.

    labels: the sheet of rows_to_label after a person filled its column anomaly with 1 or 0.
    """
    sheet = ["--labels", inside(labels)] if labels else []
    options = prepared(missing, drop or [])
    return json.loads(await gammagmm("estimate", inside(path), *options, *sheet, "--json"))


@server.tool(annotations=READS)
async def rows_to_label(
    path: str,
    n: int = 30,
    missing: Literal["drop", "impute"] = "impute",
    drop: list[str] | None = None,
) -> str:
    """Choose n rows for a person to label: a CSV sheet whose column anomaly is empty.

    Show it to a person and do not fill it yourself: the answers count as the truth.
    """
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "to_label.csv"
        options = prepared(missing, drop or [])
        await gammagmm("label", inside(path), *options, f"--n={n}", "--out", str(sheet))
        return sheet.read_text(encoding="utf-8")


@server.tool(annotations=READS)
async def predict(fit: str, path: str) -> dict[str, Any]:
    """Flag new rows with a fit that `gammagmm estimate ... --save` kept, and give the reasons."""
    return json.loads(await gammagmm("predict", inside(fit), inside(path), "--json"))


if __name__ == "__main__":
    server.run()
