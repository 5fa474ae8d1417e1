"""Identify a pass in a debugger, the same in gdb and LLDB.

MLIR runs every pass through one function, `OpToOpPassAdaptor::run(Pass *, Operation *, ...)`. Only its two
pointers and the pass's vtable are read, so passes of MLIR, which Triton's wheel holds without line tables,
are identified like Triton's own. Runs in a debugger's own Python: only the standard library.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

RUN = "_ZN4mlir6detail17OpToOpPassAdaptor3runEPNS_4PassEPNS_9OperationENS_15AnalysisManagerEbj"
GET_ARGUMENT = 4  # its index in a pass's vtable, after two destructors, getName and getDependentDialects
RUN_ON_OPERATION = 7  # its index in the vtable, for a vtable without symbols
SLOTS = 16  # maximum of searched entries of a pass's vtable
# called before each optional pass of LLVM; before LLVM 16 the second one is, and the first for older passes
OPT_BISECT = ("llvm::OptBisect::shouldRunPass", "llvm::OptBisect::checkPass")


@dataclass(frozen=True)
class NextPass:
    """A pass that is about to run."""

    argument: str  # "tritongpu-coalesce"; "" for an adaptor that runs a nested pipeline
    name: str  # "mlir::triton::gpu::CoalescePass"; "" where the vtable has no symbol
    body: int  # address of its runOnOperation
    operation: int  # address of the operation that it runs on
    stack: int  # the stack pointer: lower where another pass started it

    def fits(self, glob: str) -> bool:
        """True if a name is the pass's name in pipelines, or its class's name."""
        if not self.argument and self.name.endswith("::OpToOpPassAdaptor"):
            return False
        return any(fnmatchcase(text, glob) for text in (self.argument, self.name, self.name.split("::")[-1]))


def arrived(table: list[tuple[int, str]], vtable: str, argument: str, operation: int, stack: int) -> NextPass:
    """Build the pass from memory that a debugger read.

    table    -- address and symbol of each of the first SLOTS functions in its vtable
    vtable   -- the symbol of the vtable, "vtable for mlir::triton::gpu::CoalescePass"
    argument -- what its getArgument returns
    """
    bodies = [address for address, symbol in table if "::runOnOperation(" in symbol]
    body = bodies[0] if bodies else table[RUN_ON_OPERATION][0]
    return NextPass(argument, vtable.removeprefix("vtable for "), body, operation, stack)


def written_by(process: int) -> dict[str, Any]:
    """A process's record of its current compile; empty if there is none."""
    for path in Path(tempfile.gettempdir()).glob(f"tracing-stop-*/{process}.json"):
        now: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return now
    return {}
