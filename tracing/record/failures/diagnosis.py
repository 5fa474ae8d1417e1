"""Diagnose the exception that ended a case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from tracing.compiler.failed_pass import located, reported
from tracing.errors import Problem
from tracing.model import Failure, Outcome
from tracing.program.case import describe
from tracing.record.failures.error_chain import ErrorChain
from tracing.record.failures.inductor_failures import (
    cpp_failure,
    generated_failure,
    graph_pass_failure,
    node_failure,
    operator_failure,
    origin,
    worker_failure,
)
from tracing.record.failures.triton_failures import frontend_failure, resources_failure, stage_failure
from tracing.store import Run, RunWriter

_KERNELS = ("frontend", "worker", "pass", "stage", "launch", "C++")
# In this order: a kernel is compiled while its graph is lowered, and its wrapper is loaded.
_KINDS = (
    worker_failure,
    frontend_failure,
    resources_failure,
    stage_failure,
    cpp_failure,
    operator_failure,
    graph_pass_failure,
    node_failure,
    generated_failure,
)


class Diagnosis:
    """A context that diagnoses an exception while the generated files still exist."""

    def __init__(self, case: Path, writer: RunWriter) -> None:
        self._case, self._writer = case, writer
        self._error: BaseException | None = None
        self.failure: Failure | None = None

    def __enter__(self) -> Diagnosis:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception | SystemExit) or isinstance(error, Problem):
            return
        chain = ErrorChain(error, self._case)
        self._error = error
        failure = failure_of(chain)
        if failure is not None:
            source = self._writer.blob(failure.source) if failure.source else ""
            nodes, python = origin(chain) if failure.kind in _KERNELS and not failure.nodes else ("", "")
            made = {"nodes": nodes, "python": python, "code": ""} if nodes and python else {}
            self.failure = msgspec.structs.replace(failure, source=source, **made)

    def of(self, error: BaseException) -> str:
        """The diagnosis, in one line."""
        if self.failure is not None and self._error is error:
            return sentence(self.failure)
        return describe(error, self._case)

    def written(self, outcome: Outcome) -> Outcome:
        """Record the failure of a case, and return it; a failed pass is repeated for its diagnostic."""
        if self.failure is not None and outcome.status == "failed":
            if self.failure.kind == "pass":
                self.failure = with_diagnostic(self.failure, Run(self._writer.path))
                outcome = msgspec.structs.replace(outcome, detail=sentence(self.failure))
            self._writer.append(self.failure)
        self._writer.append(outcome)
        return outcome


def failure_of(chain: ErrorChain) -> Failure | None:
    """What failed in compiled or generated code; None: not known."""
    return next((one for kind in _KINDS if (one := _attempted(kind, chain))), None)


def with_diagnostic(failure: Failure, run: Run) -> Failure:
    """A pass that failed, with the reason that the compiler gives and its Python line.

    run -- whose IR between passes was derived
    """
    passes = list(run.passes())
    for one in passes:
        same = (one.name, one.stage, one.compilation.kernel_name)
        if one.after is not None or same != (failure.step, failure.stage, failure.name):
            continue
        its_own = [other for other in passes if other.compilation.hash == one.compilation.hash]
        ended, reasons = reported(one, its_own, run.text)
        reason, python = located(reasons[0]) if reasons else (ended, "")
        if reason:
            return msgspec.structs.replace(failure, reason=reason, python=python or failure.python)
    return failure


def _attempted(kind: Callable[[ErrorChain], Failure | None], chain: ErrorChain) -> Failure | None:
    try:
        return kind(chain)
    except Exception:  # frames and messages have no fixed form; the error itself must be reported in any case
        return None


def sentence(failure: Failure) -> str:
    """A failure in one line: `kernel scale: NameError('x is not defined') (case.py:9: tl.store(p, x))`."""
    at = ": ".join(one for one in (failure.python, failure.code) if one)
    return f"{failure.sentence} ({at})" if at else failure.sentence
