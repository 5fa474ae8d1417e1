"""Define the gdb commands that `help triton` lists. Runs in gdb's own Python: only the standard library."""

from __future__ import annotations

from pathlib import Path

import gdb
import gdb_calls
import gdb_process as process
from gdb_passes import break_in, compiling, course, read_few_symbols
from mlir_pass import OPT_BISECT

UNKNOWN = (
    "unknown: this process was not started with TRACING_STOP, which notes what is compiled; "
    "docs/debugging.md#a-process-that-waits shows how to start it; gdb's own `py-bt` may show Python's frames"
)


class Command(gdb.Command):
    """A gdb command whose help is its class's docstring."""

    name = ""

    def __init__(self) -> None:
        super().__init__(self.name, gdb.COMMAND_USER)


class Triton(Command):
    """Triton's compiler, pass by pass.

    break-pass NAME [KERNEL]   stop in runOnOperation of a pass; globs
    break-opt-bisect N         stop where LLVM's optional pass N is about to run
    print-op [EXPRESSION]      the operation that the pass runs on, as IR
    print-module               the whole module, as IR
    $op(), $module()           both, in expressions: print, watch
    pass-info                  kernel, stage, position in the pipeline, options
    py-where                   the Python frames that led here; of a RUN, first the launch in its program
    compiler-symbols [FILE]    attach sooner: read no symbols of torch's libraries
    triton-sources DIR [LLVM]  show sources of Triton, and of LLVM, from these folders

    `help COMMAND` says more. `next` stays in the function that `bt` shows as #0, also after `print-op`.
    `step` does not enter functions of the STL, llvm/ADT and MLIR's headers: `info skip`. After `stepi`, gdb
    may be in one that is inlined: `finish` leaves it."""

    name = "triton"

    def invoke(self, argument: str, from_tty: bool) -> None:
        gdb.execute(f"help {self.name}")


class AttachTo(Command):
    """Attach to a process, as `attach` does: attach-to PID

    gdb 13 fails if a thread ends at that moment; the attempt is repeated while the process exists."""

    name = "attach-to"
    attempts = 5

    def invoke(self, argument: str, from_tty: bool) -> None:
        for left in reversed(range(self.attempts)):
            try:
                gdb.execute(f"attach {argument}")
                return
            except gdb.error as error:
                gone = "No such process" not in str(error) or not Path("/proc", argument).exists()
                if gone or not left:
                    raise gdb.GdbError(str(error)) from None


class BreakPass(Command):
    """Stop in runOnOperation of a pass: break-pass [NAME [KERNEL]]

    NAME    the pass as pipelines name it (tritongpu-coalesce, canonicalize, cse), or its class
            (CoalescePass, mlir::triton::gpu::CoalescePass); a glob; without it, the pass and the kernel for
            which TRACING_STOP stopped the process
    KERNEL  only while this kernel is compiled; a glob. Known in a process that TRACING_STOP stopped.

    Before MLIR is loaded, with libtriton or by triton-opt, it waits for that. `info breakpoints` lists it,
    and `delete` deletes it."""

    name = "break-pass"

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = gdb.string_to_argv(argument)
        if len(words) > 2:
            raise gdb.GdbError("break-pass [NAME [KERNEL]]: at most two words, see `help break-pass`")
        glob, kernel = [*words, "*"][:2] if words else ("", "")
        if not break_in(glob, kernel):
            gdb.write(f"{' '.join([self.name, *words])}: waits until MLIR is loaded\n")


class CompilerSymbols(Command):
    """Read only the symbols of Triton, MLIR and Python at the next attach: compiler-symbols [LIBTRITON]

    LIBTRITON  a libtriton.so, whose symbols are read now, before the attach

    Those of torch's libraries take seconds. `sharedlibrary torch` reads them afterwards; without them, a
    backtrace ends at a frame of torch."""

    name = "compiler-symbols"

    def invoke(self, argument: str, from_tty: bool) -> None:
        read_few_symbols(argument.strip())


class BreakOptBisect(Command):
    """Stop where LLVM's optional pass N is about to run: break-opt-bisect N

    N  as -opt-bisect-limit=N counts them, from 1: the last pass that this limit lets run. -1, all of them,
       stops nowhere. LLVM counts only when it is given a limit."""

    name = "break-opt-bisect"

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = gdb.string_to_argv(argument)
        if len(words) != 1 or not words[0].lstrip("-").isdigit():
            raise gdb.GdbError("break-opt-bisect N: a number is needed, see `help break-opt-bisect`")
        for name in OPT_BISECT if int(words[0]) > 0 else ():
            gdb.execute(f"break {name}", to_string=True)  # suppresses gdb's text that LLVM is not loaded yet
            gdb.breakpoints()[-1].ignore_count = int(words[0]) - 1


class PrintOp(Command):
    """Print an operation as IR: print-op [EXPRESSION]

    EXPRESSION  an operation: a pointer, or any of MLIR's Op classes; without one, the operation that the
                current pass was started on, as it is now."""

    name = "print-op"

    def invoke(self, argument: str, from_tty: bool) -> None:
        asked = process.operation(argument) if argument else course.here().operation
        gdb.write(gdb_calls.ir(gdb_calls.OPERATION, asked))


class PrintModule(Command):
    """Print the module that the current pass manager runs on, as IR, as it is now."""

    name = "print-module"

    def invoke(self, argument: str, from_tty: bool) -> None:
        course.here()
        gdb.write(gdb_calls.ir(gdb_calls.OPERATION, course.module))


class PassInfo(Command):
    """Print the current pass: its class, its position in the pipeline, the kernel and its options."""

    name = "pass-info"

    def invoke(self, argument: str, from_tty: bool) -> None:
        here, now = course.here(), compiling()
        known = [here.argument, here.name]  # the class has no name in a tool without symbols
        gdb.write(f"pass      {', '.join(filter(None, known))}\n")
        if not now:
            gdb.write(f"kernel    {UNKNOWN}\n")
            return
        passes = list(now["passes"])
        if course.index >= 0:
            outer = passes[course.index]
            inside = "" if outer == here.argument else f"inside of {outer}, "
            position = f"{course.index + 1} of {len(passes)}" if len(passes) > 1 else "executed by itself"
            gdb.write(f"position  {inside}{position} in stage {now['stage']}\n")
            own = now["pass_options"][course.index]
            if own and not inside:
                gdb.write(f"with      {own}\n")
            passes[course.index] = f"[{outer}]"
        if now.get("recorded"):
            gdb.write(f"recorded  {now['recorded']}\n")
        gdb.write(f"kernel    {now['kernel']}\n")
        gdb.write(f"pipeline  {' '.join(passes)}\n")
        gdb.write(f"compile   {' '.join(f'{name}={value}' for name, value in now['options'].items())}\n")


class PyWhere(Command):
    """Print the Python frames that led to the pass manager, innermost first.

    Of a recorded pass, they are frames of the compile that `tracing debug RUN` replays. The lines before them
    name the launch in the recorded program, with the lines of Python that it computes."""

    name = "py-where"

    def invoke(self, argument: str, from_tty: bool) -> None:
        now = compiling()
        if not now:
            raise gdb.GdbError(UNKNOWN)
        for line in now.get("program", ()):
            gdb.write(f"{line}\n")
        if now.get("recorded"):
            gdb.write("the frames of this replayed compile, innermost first:\n")
        for index, line in enumerate(reversed(now["stack"])):
            gdb.write(f"#{index:<3} {line}\n")
        if left_out := now.get("left_out"):
            counts = ", ".join(f"{count} of {package}" for package, count in left_out.items())
            gdb.write(f"frames left out: {counts}\n")


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
        gdb.execute("set print frame-info auto")
        for printers in (Path(llvm, part) for llvm in words[1:] for part in ("llvm", "mlir")):
            script = printers / "utils/gdb-scripts/prettyprinters.py"
            if script.exists():
                gdb.execute(f"source {script}")


COMMANDS = (
    Triton,
    AttachTo,
    BreakPass,
    CompilerSymbols,
    BreakOptBisect,
    PrintOp,
    PrintModule,
    PassInfo,
    PyWhere,
    TritonSources,
)
