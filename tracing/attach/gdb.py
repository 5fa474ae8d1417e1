"""Commands that know MLIR's passes; `source` this file inside gdb, then `help triton` lists them.

Every pass comes by one function of MLIR, `OpToOpPassAdaptor::run(Pass *, Operation *, ...)`. Its two pointers
and the pass's vtable are all that is read, so nothing depends on debug information: a pass of MLIR, which
Triton's wheel holds without line tables, is found as one of Triton's own is. Registers and the code of
`getArgument` are those of x86-64.

Runs in gdb's own Python: the standard library alone.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import gdb

_RUN = "_ZN4mlir6detail17OpToOpPassAdaptor3runEPNS_4PassEPNS_9OperationENS_15AnalysisManagerEbj"
_DUMP = "_ZN4mlir9Operation4dumpEv"
_GET_ARGUMENT = 4  # its place in a pass's vtable, behind two destructors, getName and getDependentDialects
_RUN_ON_OPERATION = 7  # likewise, where no symbol tells
_SLOTS = 16  # of a pass's vtable that are looked at
_SYMBOL = re.compile(r"(.+?) (?:\+ \d+ )?in section")
_LITERAL = re.compile(r"\blea\b.*# (0x[0-9a-f]+)")
_COMPILERS = ("libtriton.so", "triton-opt")
_STRIPPED = (
    "this Triton has no symbol OpToOpPassAdaptor::run: it is stripped, so passes cannot be told apart\n"
    "  use the wheel of PyPI, which is not, or a build of your own: make triton"
)


@dataclass(frozen=True)
class Arrived:
    """A pass that is about to run."""

    argument: str  # "tritongpu-coalesce"; "" for an adaptor that runs a nested pipeline
    name: str  # "mlir::triton::gpu::CoalescePass"
    body: int  # address of its runOnOperation
    operation: int  # address of the operation that it runs on
    stack: int  # the stack pointer: lower where another pass started it

    def fits(self, glob: str) -> bool:
        if not self.argument and self.name.endswith("::OpToOpPassAdaptor"):
            return False
        return any(fnmatchcase(text, glob) for text in (self.argument, self.name, self.name.split("::")[-1]))


class Course:
    """Which passes ran since gdb came."""

    def __init__(self) -> None:
        self.last: Arrived | None = None
        self.outermost: Arrived | None = None  # the last one that the pass manager itself started
        self.module = 0  # the operation that it runs on
        self.number = -1  # of the pass manager, as the process counts
        self.index = -1  # of `outermost` in it
        self.names: dict[str, None] = {}

    def take(self, arrived: Arrived) -> None:
        """Note a pass."""
        now = compiling()
        if self.outermost is None or now.get("number", 0) != self.number:
            self.number, self.index, self.module = now.get("number", 0), -1, arrived.operation
            self.outermost = arrived
        # a pipeline that is nested in the text is run by an adaptor, a pass without an argument
        listed = arrived.stack >= self.outermost.stack or not self.outermost.argument
        if arrived.stack >= self.outermost.stack:
            self.outermost = arrived
        if arrived.argument:
            self.last = arrived
            self.names[arrived.argument] = None
            # on several functions it comes several times
            if listed and now.get("passes", [])[self.index + 1 : self.index + 2] == [arrived.argument]:
                self.index += 1

    def here(self) -> Arrived:
        if self.last is None:
            raise gdb.GdbError("no pass has started since gdb came: `break-pass *`, then `continue`")
        return self.last


course = Course()
pending: list[tuple[str, str]] = []  # pass and kernel of each break-pass before libtriton is loaded


class Passes(gdb.Breakpoint):
    """Sees every pass, and never stops."""

    def __init__(self) -> None:
        super().__init__(f"*{_address(_RUN):#x}", internal=True)
        self.silent = True

    def stop(self) -> bool:
        course.take(_arrived())
        return False


class PassBreakpoint(gdb.Breakpoint):
    """Sees every pass, and has gdb stop at the first instruction of those that are wanted."""

    def __init__(self, glob: str, kernel: str) -> None:
        super().__init__(f"*{_address(_RUN):#x}")
        self.glob = glob
        self.kernel = kernel
        self.found = 0

    def stop(self) -> bool:
        arrived = _arrived()
        if arrived.fits(self.glob) and fnmatchcase(compiling().get("kernel", ""), self.kernel):
            self.found += 1
            # an internal one: at one of a user's, gdb would show the functions that are inlined there instead
            gdb.Breakpoint(f"*{arrived.body:#x}", internal=True, temporary=True)
        return False


class Command(gdb.Command):
    """A gdb command whose help is its class's docstring."""

    name = ""
    prefix = False

    def __init__(self) -> None:
        super().__init__(self.name, gdb.COMMAND_USER, prefix=self.prefix)


class Triton(Command):
    """Triton's compiler, pass by pass.

    break-pass NAME [KERNEL]   stop in runOnOperation of a pass; globs
    print-op [EXPRESSION]      the operation that the pass runs on, as IR
    print-module               the whole module, as IR
    pass-info                  kernel, stage, place in the pipeline, options
    py-where                   the Python frames that led here
    triton-sources DIR [LLVM]  show sources of Triton, and of LLVM, from these folders

    `help COMMAND` says more. `step` does not enter the STL, llvm/ADT and MLIR's headers: `info skip`."""

    name = "triton"
    prefix = True


class BreakPass(Command):
    """Stop in runOnOperation of a pass: break-pass NAME [KERNEL]

    NAME    the pass as pipelines name it (tritongpu-coalesce, canonicalize, cse), or its class
            (CoalescePass, mlir::triton::gpu::CoalescePass); a glob
    KERNEL  only while this kernel is compiled; a glob. Known in a process that TRACING_STOP stopped.

    Before libtriton is loaded, it waits for that. `info breakpoints` lists it, and `delete` deletes it."""

    name = "break-pass"

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = gdb.string_to_argv(argument)
        if not 1 <= len(words) <= 2:
            raise gdb.GdbError("break-pass NAME [KERNEL]: one or two words are needed, see `help break-pass`")
        glob, kernel = [*words, "*"][:2]
        if _loaded():
            PassBreakpoint(glob, kernel)
        else:
            pending.append((glob, kernel))
            gdb.write(f"break-pass {glob}: waits for libtriton\n")


class PrintOp(Command):
    """Print an operation as IR: print-op [EXPRESSION]

    EXPRESSION  an operation: a pointer, or any of MLIR's Op classes; without one, the operation that the
                current pass was started on, as it is now."""

    name = "print-op"

    def invoke(self, argument: str, from_tty: bool) -> None:
        gdb.write(_text(_operation(argument) if argument else course.here().operation))


class PrintModule(Command):
    """Print the module that the current pass manager runs on, as IR, as it is now."""

    name = "print-module"

    def invoke(self, argument: str, from_tty: bool) -> None:
        course.here()
        gdb.write(_text(course.module))


class PassInfo(Command):
    """Say which pass this is: its class, its place in the pipeline, the kernel and its options."""

    name = "pass-info"

    def invoke(self, argument: str, from_tty: bool) -> None:
        here, now = course.here(), compiling()
        gdb.write(f"pass      {here.argument}, {here.name}\n")
        if not now:
            gdb.write("kernel    unknown: this process was not started with TRACING_STOP\n")
            return
        passes = list(now["passes"])
        if course.index >= 0:
            outer = passes[course.index]
            inside = "" if outer == here.argument else f"inside of {outer}, "
            gdb.write(f"place     {inside}{course.index + 1} of {len(passes)} in stage {now['stage']}\n")
            passes[course.index] = f"[{outer}]"
        gdb.write(f"kernel    {now['kernel']}\n")
        gdb.write(f"pipeline  {' '.join(passes)}\n")
        gdb.write(f"options   {' '.join(f'{name}={value}' for name, value in now['options'].items())}\n")


class PyWhere(Command):
    """Print the Python frames that led to the pass manager, innermost first."""

    name = "py-where"

    def invoke(self, argument: str, from_tty: bool) -> None:
        stack = compiling().get("stack")
        if not stack:
            raise gdb.GdbError("unknown: this process was not started with TRACING_STOP")
        for index, line in enumerate(reversed(stack)):
            gdb.write(f"#{index:<3} {line}\n")


class TritonSources(Command):
    """Show sources from these folders: triton-sources TRITON [LLVM]

    TRITON  a checkout of the version that runs; the wheel calls it /project
    LLVM    a checkout of llvm-project; its pretty printers are loaded too"""

    name = "triton-sources"

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError("triton-sources TRITON [LLVM]: a folder is needed")
        gdb.execute(f"set substitute-path /project {words[0]}")
        for printers in (Path(llvm, part) for llvm in words[1:] for part in ("llvm", "mlir")):
            script = printers / "utils/gdb-scripts/prettyprinters.py"
            if script.exists():
                gdb.execute(f"source {script}")


def compiling() -> dict[str, Any]:
    """What the process wrote down about the compile that it is in; empty if it did not."""
    process = gdb.selected_inferior().pid
    for path in Path(tempfile.gettempdir()).glob(f"tracing-stop-*/{process}.json"):
        now: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return now
    return {}


def _arrived() -> Arrived:
    # at the first instruction of OpToOpPassAdaptor::run
    names = ("$rdi", "$rsi", "$rsp")
    address, operation, stack = (int(gdb.parse_and_eval(f"(unsigned long){name}")) for name in names)
    table = _word(address)
    slots = [_word(table + 8 * slot) for slot in range(_SLOTS)]
    bodies = [slot for slot in slots if "::runOnOperation(" in _symbol(slot)]
    name = _symbol(table).removeprefix("vtable for ")
    return Arrived(
        _literal(slots[_GET_ARGUMENT]),
        name,
        bodies[0] if bodies else slots[_RUN_ON_OPERATION],
        operation,
        stack,
    )


def _literal(function: int) -> str:
    # the string that a function returns: the first address that it takes, with and without optimisation
    for instruction in gdb.selected_inferior().architecture().disassemble(function, count=12):
        if match := _LITERAL.search(instruction["asm"]):
            return gdb.Value(int(match[1], 16)).cast(gdb.lookup_type("char").pointer()).string()
    return ""


def _word(address: int) -> int:
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")


def _symbol(address: int) -> str:
    match = _SYMBOL.match(gdb.execute(f"info symbol {address}", to_string=True))
    return match[1] if match else ""


def _loaded() -> bool:
    return any(_is_compiler(file.filename) for file in gdb.objfiles())


def _is_compiler(path: str | None) -> bool:
    return (path or "").rpartition("/")[2] in _COMPILERS


def _address(symbol: str) -> int:
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))
    except gdb.error:
        raise gdb.GdbError(_STRIPPED) from None


def _operation(expression: str) -> int:
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value["state"]  # what every Op class holds
    return int(value)


def _text(operation: int) -> str:
    # Operation::dump writes to file descriptor 2 of the process: a file takes its place for that long
    with tempfile.NamedTemporaryFile() as file:
        kept = _call("int", "dup", 2)
        _call("int", "dup2", _call("int", "open", f'"{file.name}"', 1), 2)
        try:
            _call("void", _DUMP, operation)
        finally:
            _call("int", "dup2", kept, 2)
            _call("int", "close", kept)
        return Path(file.name).read_text(encoding="utf-8", errors="replace")


def _call(result: str, function: str, *arguments: object) -> int:
    kinds = ", ".join("const char *" if isinstance(one, str) else "unsigned long" for one in arguments)
    words = ", ".join(map(str, arguments))
    value = gdb.parse_and_eval(f"(({result} (*)({kinds})) {function})({words})")
    return 0 if result == "void" else int(value)


def _library_came(event: Any) -> None:
    if not _is_compiler(event.new_objfile.filename):
        return
    try:
        Passes()
        while pending:
            PassBreakpoint(*pending.pop(0))
    except gdb.GdbError as error:
        gdb.write(f"{error}\n")


def _never_came(event: Any) -> None:
    for one in gdb.breakpoints():
        if isinstance(one, PassBreakpoint) and not one.found and course.names:
            near = get_close_matches(one.glob, course.names, n=3, cutoff=0.5) or list(course.names)
            gdb.write(f"no pass {one.glob} of a kernel {one.kernel} came; nearest: {', '.join(near)}\n")


gdb.execute(f"source {Path(__file__).with_name('passes.gdb')}", to_string=True)
for command in (Triton, BreakPass, PrintOp, PrintModule, PassInfo, PyWhere, TritonSources):
    command()
if _loaded():
    Passes()
gdb.events.new_objfile.connect(_library_came)
gdb.events.exited.connect(_never_came)
