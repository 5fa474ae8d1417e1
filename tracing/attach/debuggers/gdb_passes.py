"""Find which pass of MLIR is about to run, and stop gdb in it.

mlir_pass.py says which memory is read. Runs in gdb's own Python: only the standard library.
"""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import gdb
import gdb_process as process
from mlir_pass import GET_ARGUMENT, RUN, SLOTS, NextPass, arrived, written_by

_STRIPPED = (
    "this Triton has no symbol OpToOpPassAdaptor::run: it is stripped, so passes cannot be distinguished\n"
    "  use the wheel of PyPI, which is not, or a build of your own: make triton"
)


class Course:
    """The passes that ran since gdb attached."""

    def __init__(self) -> None:
        self.last: NextPass | None = None
        self.outermost: NextPass | None = None  # the last one that the pass manager itself started
        self.module = 0  # the operation that it runs on
        self.number = -1  # of the pass manager, as the process counts
        self.index = -1  # of `outermost` in it
        self.names: dict[str, None] = {}

    def take(self, arrived: NextPass) -> None:
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
            # a pass on several functions arrives several times
            if listed and now.get("passes", [])[self.index + 1 : self.index + 2] == [arrived.argument]:
                self.index += 1

    def here(self) -> NextPass:
        if self.last is None:
            raise gdb.GdbError("no pass has started since gdb attached: `break-pass *`, then `continue`")
        return self.last


course = Course()
_pending: list[tuple[str, str]] = []  # pass and kernel of each break-pass before MLIR is loaded


class Passes(gdb.Breakpoint):
    """A breakpoint that is hit by every pass and never stops."""

    there: Passes | None = None  # the one of this gdb

    def __init__(self, address: int) -> None:
        process.abi()
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.address = address
        Passes.there = self

    def stop(self) -> bool:
        course.take(_arrived())
        return False


class PassBreakpoint(gdb.Breakpoint):
    """A breakpoint that is hit by every pass, and stops gdb at the first instruction of the wanted ones."""

    def __init__(self, address: int, glob: str, kernel: str) -> None:
        super().__init__(f"*{address:#x}")
        self.glob = glob
        self.kernel = kernel
        self.found = 0

    def stop(self) -> bool:
        here = _arrived()
        if here.fits(self.glob) and fnmatchcase(compiling().get("kernel", ""), self.kernel):
            self.found += 1
            PassArrival(here.body)
        return False


class PassArrival(gdb.Breakpoint):
    """A breakpoint at the first instruction of a pass, for one stop, which gdb_stops prints in a terminal."""

    def __init__(self, address: int) -> None:
        # an internal one: at one of a user's, gdb would show the functions that are inlined there instead
        super().__init__(f"*{address:#x}", internal=True, temporary=True)
        self.silent = process.in_terminal()


def break_in(glob: str, kernel: str) -> bool:
    """Make gdb stop in a pass; False if the stop waits until MLIR is loaded.

    glob, kernel -- "" for those that the process waits for; read then
    """
    if Passes.there is None:
        _pending.append((glob, kernel))
        return False
    PassBreakpoint(Passes.there.address, *((glob, kernel) if glob else _awaited()))
    return True


def _awaited() -> tuple[str, str]:
    now = compiling()
    glob = now.get("wanted", "").rpartition(":")[2]
    names = [name for name in now.get("passes", []) if fnmatchcase(name, glob)]
    if not names:
        raise gdb.GdbError("this process does not wait at a pass: name one, break-pass NAME")
    return names[0], now["kernel"]


def compiling() -> dict[str, Any]:
    """The process's record of its current compile; empty if there is none."""
    return written_by(gdb.selected_inferior().pid)


def watch() -> None:
    """From now on, look for MLIR in the process, and for passes that never come."""
    gdb.events.new_objfile.connect(_file_came)
    gdb.events.exited.connect(_never_came)
    for file in gdb.objfiles():
        _look(file.filename or "")


def _file_came(event: Any) -> None:
    _look(event.new_objfile.filename or "")


def _look(path: str) -> None:
    # a program that contains MLIR is mapped at its address only when its libraries are loaded
    if Passes.there is not None or not gdb.selected_inferior().pid:
        return
    space = gdb.current_progspace()
    names = (path, (space and space.filename) or "")
    holders = [name for name in names if process.HOLDERS.fullmatch(name)]
    address = next(filter(None, (process.address_of(RUN, name) for name in holders)), 0)
    if address and process.mapped(address):
        _begin(address)
    elif not address and path.endswith(process.TRITON) and not _has_shared_mlir():
        process.say(f"{_STRIPPED}\n")


def read_few_symbols(library: str) -> None:
    """At the next attach, read the symbols of the compiler and of Python only.

    library -- libtriton.so, whose symbols are read now, so that the attach takes a tenth of a second; "": at
               the attach

    Those of torch's libraries take several seconds; `sharedlibrary` reads them afterwards.
    """
    gdb.execute("set auto-solib-add off")
    # gdb shares a file's symbols between inferiors, and an attach would free those of its own
    ahead = _inferior_of(library) if Path(library).is_file() else ""

    def attached(_event: Any) -> None:
        gdb.events.stop.disconnect(attached)
        for name in ("libc\\.", "libpython", "libMLIR", process.TRITON):
            gdb.execute(f"sharedlibrary {name}", to_string=True)
        if ahead:
            gdb.execute(f"remove-inferiors {ahead}")

    gdb.events.stop.connect(attached)


def _inferior_of(library: str) -> str:
    # the number of a new inferior, which runs nothing
    gdb.execute(f'add-inferior -exec "{library}"', to_string=True)
    return str(max(one.num for one in gdb.inferiors()))


def _has_shared_mlir() -> bool:
    # listed before its symbols are read
    return "/libMLIR" in gdb.execute("info sharedlibrary", to_string=True)


def _begin(address: int) -> None:
    gdb.events.new_objfile.disconnect(_file_came)
    try:
        Passes(address)
        while _pending:
            break_in(*_pending.pop(0))
    except gdb.GdbError as error:
        process.say(f"{error}\n")


def _arrived() -> NextPass:
    # at the first instruction of OpToOpPassAdaptor::run
    own = process.abi()
    address, operation = map(process.register, own.arguments)
    vtable = process.word(address)
    slots = [process.word(vtable + 8 * slot) for slot in range(SLOTS)]
    table = [(slot, process.symbol(slot)) for slot in slots]
    argument = process.literal(slots[GET_ARGUMENT])
    return arrived(table, process.symbol(vtable), argument, operation, process.register(own.stack))


def _never_came(event: Any) -> None:
    passes = [one for one in gdb.breakpoints() if isinstance(one, PassBreakpoint)]
    lacking = [*_pending, *((one.glob, one.kernel) for one in passes if not one.found)]
    for glob, kernel in lacking:
        process.say(f"no pass {glob} of a kernel {kernel} ran; {_instead(glob)}\n")
    if lacking and gdb.convenience_variable("_batch"):  # nobody could type after its commands
        gdb.execute("quit 2")


def _instead(glob: str) -> str:
    if not course.names:
        return "the process ended, and compiled nothing after gdb attached"
    if any(fnmatchcase(name, glob) for name in course.names):
        return "it ran for another kernel"
    near = get_close_matches(glob, course.names, n=3, cutoff=0.5) or list(course.names)
    return f"nearest: {', '.join(near)}"
