"""Writes checked graphs and their violations to a run.

The run is the one of the command that executes the program, or else one of this process: it is created in the
folder `runs` when the first graph is checked, and ends with the process.
"""

from __future__ import annotations

import atexit
import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch

from tracing import store
from tracing.backend.compile_record import CompileRecorder
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.graph_check import GraphCheck, check_graph, coverage
from tracing.environment import environment, rank
from tracing.model import SCHEMA, CheckedGraph, GraphKind, NotCovered, Outcome, RunInfo
from tracing.record.graphs.graph_nodes import graph_json, graph_text
from tracing.record.session import recorded_into
from tracing.store.graph_file import encoded
from tracing.upstream.inductor.backend_compile import real_tensors
from tracing.upstream.torch.dynamo import compile_id

RUNS = Path("runs")


class CheckRecord:
    """The checks of this process, in one run."""

    def __init__(self, writer: store.RunWriter, compiles: CompileRecorder | None = None) -> None:
        """compiles -- records how Inductor compiles checked graphs into a run of the backends' own; None: the
        caller of the backends records it
        """
        self.writer = writer
        self.violations = 0
        self._compiles = compiles
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # the backward is compiled on a thread of autograd

    def checked(
        self, module: torch.fx.GraphModule, kind: GraphKind, backend: str, constraints: Sequence[Constraint]
    ) -> tuple[int, GraphCheck]:
        """Check an ATen graph and record it; returns its number and the result of the check."""
        check = check_graph(module.graph, constraints)
        with self._lock, real_tensors():
            number = next(self._numbers)
            text = self.writer.blob(graph_text(module))
            nodes = self.writer.blob(encoded(graph_json(module)))
            names = tuple(repr(one) for one in constraints)
            self.writer.append(CheckedGraph(number, backend, kind, compile_id(), names, text, nodes))
            check = check.of_graph(number)
            self.writer.extend(check.violations)
            self.writer.append(coverage(module, check, number))
            self.violations += sum(one.decided for one in check.violations)
        return number, check

    @property
    def own(self) -> bool:
        """True if nothing but the backends records into the run."""
        return self._compiles is not None

    def unchecked(self, why: str) -> None:
        """Note a graph that could not be checked."""
        self.writer.append(NotCovered(f"the constraints of a graph: {why}", ""))

    def compile(self) -> AbstractContextManager[object]:
        """While active, what Inductor compiles is recorded, too."""
        return nullcontext() if self._compiles is None else self._compiles

    def repro(self, script: str) -> Path:
        """Write a script into the run; returns its path."""
        with self._lock:
            paths = (self.writer.path / f"repro-{n}.py" for n in itertools.count())
            path = next(one for one in paths if not one.exists())
            path.write_text(script)
        return path


_current: list[CheckRecord] = []
_others: list[CheckRecord] = []  # of recordings of this process, and one of its own
_lock = threading.Lock()


@contextmanager
def checks_recorded(writer: store.RunWriter) -> Iterator[CheckRecord]:
    """While active, backends of this process record their checks into a run."""
    record = CheckRecord(writer)
    _current.append(record)
    try:
        yield record
    finally:
        _current.remove(record)


def current_record() -> CheckRecord:
    """The record to which backends write; creates a run below `runs` if nothing records this process."""
    with _lock:
        if _current:
            return _current[-1]
        writer = recorded_into()
        for one in _others:
            if one.writer is writer or (writer is None and one.own):
                return one
        _others.append(_own_record() if writer is None else CheckRecord(writer))
        return _others[-1]


def _own_record() -> CheckRecord:
    script = Path(sys.argv[0]) if sys.argv[0:1] not in ([], [""], ["-c"], ["-"]) else Path("python")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    info = RunInfo(
        SCHEMA, script.stem, str(script), tuple(sys.argv), torch.initial_seed(), store.now(),
        environment(device, ""), "none", operators="none",
    )  # fmt: skip
    writer = store.create(RUNS, info, rank())
    record = CheckRecord(writer, CompileRecorder(writer))

    def ended() -> None:
        writer.append(Outcome("compiled", f"graphs were checked; {record.violations} violations"))
        writer.close()

    atexit.register(ended)
    return record
