"""``gammagmm mcp``: a server for assistants that ask about the files of one folder."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gammagmm.cli.request import UsageError
from gammagmm.errors import MissingExtraError

__all__ = ["run_server"]

COMMAND = (sys.executable, "-P", "-m", "gammagmm.cli.main")
INSTRUCTIONS = (
    "Estimates what share of the unlabelled rows of a table are anomalies. Without labels the "
    "share is not known: report the model range and the sentences in lines together with the "
    "share, and never the share alone. If the decision matters, let a person label the rows of "
    "rows_to_label and pass the sheet to estimate."
)


def run_server(folder: Path) -> None:
    """Answer the calls of a client over standard input and output until it leaves."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise MissingExtraError("mcp needs the MCP SDK", "mcp", name="mcp") from None
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}", "Name the folder with the files.")
    server = MCPServer("gammagmm", instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(folder.resolve())
    for tool in (tools.columns, tools.estimate, tools.rows_to_label, tools.predict):
        server.add_tool(
            tool, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False)
        )
    server.run()


@dataclass(frozen=True)
class Tools:
    """What a client can call. Only files in `folder` are read, and none is changed."""

    folder: Path

    async def columns(self, path: str) -> str:
        """Show what each column of a table is taken for, and what is wrong, without a fit.

        Call it first. path: a CSV, Excel, SQLite, Parquet, JSON, ARFF, MAT or NumPy file.
        """
        return await self._answer("estimate", self._inside(path), "--columns")

    async def estimate(
        self,
        path: str,
        missing: Literal["drop", "impute"] = "impute",
        drop: list[str] | None = None,
        labels: str | None = None,
    ) -> dict[str, Any]:
        """Estimate the share of anomalies, with what is known of it, and the flagged rows.

        labels: the sheet of rows_to_label after a person filled its column anomaly with 1 or 0.
        """
        sheet = ["--labels", self._inside(labels)] if labels else []
        options = _prepared(missing, drop or [])
        text = await self._answer("estimate", self._inside(path), *options, *sheet, "--json")
        return dict(json.loads(text))

    async def rows_to_label(
        self,
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
            options = _prepared(missing, drop or [])
            await self._answer(
                *("label", self._inside(path), *options),
                *("--sheet-only", f"--n={n}", "--out", str(sheet)),
            )
            return sheet.read_text(encoding="utf-8")

    async def predict(self, fit: str, path: str) -> dict[str, Any]:
        """Flag new rows with a fit that `gammagmm estimate ... --save` saved, with reasons."""
        text = await self._answer("predict", self._inside(fit), self._inside(path), "--json")
        return dict(json.loads(text))

    def _inside(self, name: str) -> str:
        """The path of a file in the folder, seen from there; links must not lead out of it."""
        try:
            path = (self.folder / name).resolve()
            is_inside = path.is_relative_to(self.folder) and path.is_file()
        except (OSError, ValueError):  # no file can have this name
            is_inside = False
        if not is_inside:
            raise _error(f"There is no file {name[:100]} in the folder of this server.")
        # A name that starts with - is no option.
        return f"./{path.relative_to(self.folder).as_posix()}"

    async def _answer(self, command: str, *arguments: str) -> str:
        """The output of the command; its message is the error of the tool.

        It runs in a process of its own: what libraries print does not disturb the protocol.
        """
        command_line = [*COMMAND, command, *arguments, "--config", "none", "--quiet"]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = await asyncio.create_subprocess_exec(
                *command_line,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
            try:
                code = await process.wait()
            finally:
                if process.returncode is None:  # the call was cancelled
                    process.terminate()
            stream = output if code == 0 else errors
            stream.seek(0)
            text = stream.read().decode()
        if code != 0:
            raise _error(text.strip())
        return text


def _prepared(missing: str, drop: list[str]) -> list[str]:
    """Options of the command: how the columns are prepared."""
    options = ["--missing", missing]
    return [*options, f"--drop={','.join(drop)}"] if drop else options


def _error(message: str) -> Exception:
    """An error whose message the client gets."""
    from mcp.server.mcpserver.exceptions import ToolError

    error: Exception = ToolError(message)
    return error
