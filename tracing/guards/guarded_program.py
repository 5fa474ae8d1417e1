"""Run a program, and record how Dynamo compiles its frames."""

from __future__ import annotations

from contextlib import suppress

from tracing import store
from tracing.model import Outcome
from tracing.program.device import Device
from tracing.program.user_program import UserProgram
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.recorded_program import RecordedProgram
from tracing.record.session import Session


def record_program_guards(
    program: UserProgram, device: Device, writer: store.RunWriter, seed: int | None
) -> Outcome:
    """Run a program to its end in this process; launches are recorded without digests and without passes.

    seed -- of torch's generators; None: not seeded

    A program that raises, or that Ctrl-C interrupts, leaves a readable run.
    """
    recorder = LaunchRecorder(writer, "none", operators="none", graphs=False, strict=False)
    recorded = RecordedProgram(program, Session(device, recorder, passes=None), seed)
    with suppress(KeyboardInterrupt):  # a training loop may end in no other manner
        recorded.run_to_end()
    return recorded.outcome
