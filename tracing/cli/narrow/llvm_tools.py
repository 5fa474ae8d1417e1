"""`tracing mlir-translate`, `llvm-opt` and `llc`: LLVM's tools, as far as Triton's wheel contains them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tracing.cli.answers.tool_errors import TOOL_WORDS, ToolCommand, as_a_tool
from tracing.cli.app import NARROW, Json, app
from tracing.errors import Problem

ToolArguments = Annotated[
    list[str],
    typer.Argument(
        metavar="[FILE|-] [FLAG]...", help="The text, or - for standard input; then flags of the tool."
    ),
]
_WITH_VALUE = ("o", "mtriple", "mcpu", "mattr", "filetype", "passes")  # after "=" or a space
_LEVEL = re.compile(r"default<(O[0-3])>")


@dataclass(frozen=True, slots=True)
class _Call:
    name: str  # of the file
    text: str
    flags: Mapping[str, str]

    def write(self, made: str | bytes, as_json: bool) -> None:
        target = self.flags.get("o", "-")
        if target != "-":
            Path(target).write_bytes(made.encode() if isinstance(made, str) else made)
        if as_json:
            if target == "-" and isinstance(made, bytes):
                raise Problem("an object file is no text", "name a file for it: -o FILE")
            written = {"text": made, "file": None} if target == "-" else {"text": None, "file": target}
            print(json.dumps(written, indent=2))
        elif target != "-":
            return
        elif isinstance(made, str):
            sys.stdout.write(made)
        else:
            sys.stdout.buffer.write(made)


@app.command("mlir-translate", cls=ToolCommand, context_settings=TOOL_WORDS, rich_help_panel=NARROW)
def mlir_translate(arguments: ToolArguments = [], as_json: Json = False) -> None:  # noqa: B006  (typer's form of "none")
    """Translate MLIR's LLVM dialect to LLVM IR, as `mlir-translate --mlir-to-llvmir` does.

    Example: echo 'llvm.func @f() { llvm.return }' | tracing mlir-translate --mlir-to-llvmir -

    Exit status: as mlir-translate's: 0, or 1 if the text or an option fails.
    """
    with as_a_tool():
        from tracing.compiler.codegen.llvm_tools import translated

        call = _call(arguments, {"mlir-to-llvmir", "o"})
        if "mlir-to-llvmir" not in call.flags:
            raise Problem("no translation of MLIR is named", "add --mlir-to-llvmir")
        call.write(translated(call.text, call.name), as_json)


@app.command("llvm-opt", cls=ToolCommand, context_settings=TOOL_WORDS, rich_help_panel=NARROW)
def llvm_opt(arguments: ToolArguments = [], as_json: Json = False) -> None:  # noqa: B006
    """Run a default pipeline of LLVM over LLVM IR, as opt does: -O0 to -O3, or -passes='default<O1>'.

    Example: echo 'define void @f() { ret void }' | tracing llvm-opt -S -O3 -

    Exit status: as opt's: 0, or 1 if the text or an option fails.
    """
    with as_a_tool():
        from tracing.compiler.codegen.llvm_tools import optimised

        call = _call(arguments, {"S", "O0", "O1", "O2", "O3", "passes", "o"})
        call.write(optimised(call.text, _level(call.flags)), as_json)


@app.command("llc", cls=ToolCommand, context_settings=TOOL_WORDS, rich_help_panel=NARROW)
def llc(arguments: ToolArguments = [], as_json: Json = False) -> None:  # noqa: B006
    """Compile LLVM IR, as llc does: -mtriple, -mcpu, -mattr, -filetype=asm or obj.

    Example: echo 'define void @f() { ret void }' | tracing llc -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90 -

    Exit status: as llc's: 0, or 1 if the text or an option fails.
    """
    with as_a_tool():
        from tracing.compiler.codegen.llvm_tools import assembled

        call = _call(arguments, {"mtriple", "mcpu", "mattr", "filetype", "O3", "o"})
        triple = call.flags.get("mtriple") or _triple(call.text)
        kind = call.flags.get("filetype", "asm")
        if kind not in ("asm", "obj"):
            raise Problem(f"-filetype={kind} cannot be made", "asm and obj can")
        target = (triple, call.flags.get("mcpu", ""), call.flags.get("mattr", ""))
        call.write(assembled(call.text, *target, (), binary=kind == "obj"), as_json)


def _level(flags: Mapping[str, str]) -> str | None:
    if "passes" in flags:
        level = _LEVEL.fullmatch(flags["passes"])
        if level is None:
            raise Problem(
                f"-passes={flags['passes']} is not supported: Triton's bindings run only LLVM's default "
                "pipelines",
                "-passes='default<O3>'; or LLVM's own opt, which `make llvm` builds",
            )
        return level[1]
    return next((name for name in flags if name.startswith("O")), None)


def _triple(text: str) -> str:
    triple = re.search(r'^target triple = "([^"]+)"', text, re.MULTILINE)
    if triple is None:
        raise Problem("the module names no target", "name one: -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90")
    return triple[1]


def _call(arguments: Sequence[str], known: Collection[str]) -> _Call:
    from tracing.compiler.opt.command_line import flag_words  # imports Triton

    files, flags = [], {}
    for name, value in flag_words(arguments, _WITH_VALUE):
        if not name:
            files.append(value)
        elif name not in known:
            shown = ", ".join(f"-{one}" for one in sorted(known))
            raise Problem(f"the option -{name} is not supported here", f"these are: {shown}")
        else:
            flags[name] = value
    if len(files) > 1:
        raise Problem(f"one file is read, not {len(files)}: {' '.join(files)}", "name one")
    file = files[0] if files else "-"
    if file == "-":
        return _Call("<stdin>", sys.stdin.read(), flags)
    return _Call(file, Path(file).read_text(), flags)
