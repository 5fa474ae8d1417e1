"""The outcome of a recorded program: its exit status, or the error that ended it with a diagnosis."""

from __future__ import annotations

import traceback

from tracing.errors import message
from tracing.model import Outcome
from tracing.program.user_program import UserProgram
from tracing.record.failures.diagnosis import Diagnosis
from tracing.store import RunWriter

_NOT_COMPARED = "a program is not compared with eager"


def ended_with(ending: str) -> Outcome:
    """The outcome of a program that ended normally; `ending` is "exit status 0"."""
    return Outcome("ended", f"{ending}; {_NOT_COMPARED}")


def ended_by(error: BaseException, program: UserProgram, writer: RunWriter) -> Outcome:
    """The outcome of a program that ended with an exception; its diagnosis is written into the run."""
    if isinstance(error, SystemExit):
        return ended_with(f"exit status {exit_status(error)}")
    if isinstance(error, KeyboardInterrupt):
        return Outcome("interrupted", "KeyboardInterrupt")
    diagnosis = Diagnosis(program.path, writer)
    diagnosis.__exit__(type(error), error, error.__traceback__)
    if diagnosis.failure is not None:
        writer.append(diagnosis.failure)
    trace = "".join(traceback.format_exception(error))
    return Outcome("failed", diagnosis.of(error), trace, message(error))


def exit_status(error: SystemExit) -> int:
    """The exit status of a SystemExit, as in Python."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    return 1
