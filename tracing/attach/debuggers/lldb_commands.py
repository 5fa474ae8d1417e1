"""Define LLDB's commands, loaded by `command script import`; gdb has more.

Runs in LLDB's own Python: only the standard library.
"""

from __future__ import annotations

import re
import shlex
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import lldb  # type: ignore[import-not-found]  # only in LLDB

sys.path.append(str(Path(__file__).resolve().parent))

from mlir_pass import GET_ARGUMENT, OPT_BISECT, RUN, SLOTS, NextPass, arrived, written_by

_LEA = re.compile(r"(-?0x[0-9a-f]+)\(%rip\)")  # the address that getArgument takes, from the next instruction
_wanted: dict[int, tuple[str, str]] = {}  # glob of the pass and of the kernel, by breakpoint


def break_pass(debugger: Any, words: str, result: Any, _session: Any) -> None:
    """Stop in runOnOperation of a pass: break-pass NAME [KERNEL]

    NAME    the pass as pipelines name it (tritongpu-coalesce, canonicalize, cse), or its class; a glob
    KERNEL  only while this kernel is compiled; a glob. Known in a process that TRACING_STOP stopped.

    x86-64 only. `breakpoint list` lists it, and `breakpoint delete` deletes it."""
    globs = shlex.split(words)
    if not 1 <= len(globs) <= 2:
        result.SetError("break-pass NAME [KERNEL]: one or two words are needed")
        return
    target = debugger.GetSelectedTarget()
    if not target.GetTriple().startswith("x86_64"):
        result.SetError(
            f"passes are identified by the registers of x86-64, and this is {target.GetTriple()}: use gdb"
        )
        return
    # at the first instruction, where the arguments are in their registers
    debugger.HandleCommand(f"breakpoint set --skip-prologue false --name {RUN}")
    added = target.GetBreakpointAtIndex(target.GetNumBreakpoints() - 1)
    added.SetScriptCallbackFunction(f"{__name__}.came")
    glob, kernel = [*globs, "*"][:2]
    _wanted[added.GetID()] = glob, kernel


def came(frame: Any, location: Any, _arguments: Any, _session: Any) -> bool:
    """Called before a pass runs; makes LLDB stop in a wanted one. Never stops here."""
    glob, kernel = _wanted[location.GetBreakpoint().GetID()]
    here, process = _arrived(frame), frame.GetThread().GetProcess()
    if here.fits(glob) and fnmatchcase(written_by(process.GetProcessID()).get("kernel", ""), kernel):
        process.GetTarget().BreakpointCreateByAddress(here.body).SetOneShot(True)
    return False


def break_opt_bisect(debugger: Any, words: str, result: Any, _session: Any) -> None:
    """Stop where LLVM's optional pass N is about to run: break-opt-bisect N

    N  as -opt-bisect-limit=N counts them, from 1; -1, all of them, stops nowhere"""
    if not words.strip().lstrip("-").isdigit():
        result.SetError("break-opt-bisect N: a number is needed")
        return
    for name in OPT_BISECT if int(words) > 0 else ():
        added = debugger.GetSelectedTarget().BreakpointCreateByName(name)
        added.SetIgnoreCount(int(words) - 1)


def _arrived(frame: Any) -> NextPass:
    address, operation, stack = (frame.FindRegister(name).unsigned for name in ("rdi", "rsi", "rsp"))
    process = frame.GetThread().GetProcess()
    target = process.GetTarget()
    vtable = _word(process, address)
    slots = [_word(process, vtable + 8 * slot) for slot in range(SLOTS)]
    table = [(slot, _symbol(target, slot)) for slot in slots]
    argument = _literal(process, slots[GET_ARGUMENT])
    return arrived(table, _symbol(target, vtable), argument, operation, stack)


def _word(process: Any, address: int) -> int:
    return int(process.ReadPointerFromMemory(address, lldb.SBError()))


def _symbol(target: Any, address: int) -> str:
    return target.ResolveLoadAddress(address).GetSymbol().GetName() or ""


def _literal(process: Any, function: int) -> str:
    # the string that a function returns: the first address that it takes
    target = process.GetTarget()
    for instruction in target.ReadInstructions(target.ResolveLoadAddress(function), 12, "att"):
        if match := _LEA.search(instruction.GetOperands(target)):
            following = instruction.GetAddress().GetLoadAddress(target) + instruction.GetByteSize()
            return str(process.ReadCStringFromMemory(following + int(match[1], 16), 256, lldb.SBError()))
    return ""


def __lldb_init_module(debugger: Any, _session: Any) -> None:  # the name that LLDB calls
    for name in ("break_pass", "break_opt_bisect"):
        added = f"--function {__name__}.{name} {name.replace('_', '-')}"
        debugger.HandleCommand(f"command script add --overwrite {added}")
