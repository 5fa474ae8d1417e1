"""Reports kernels that overwrite a buffer which the generated code reads later."""

from __future__ import annotations

from types import FrameType

from tracing.launch import hooks
from tracing.launch.reused_buffers import ReusedBuffers
from tracing.model import MemoryEvidence
from tracing.record.launches.launch_digests import LaunchInFlight
from tracing.store import RunWriter
from tracing.upstream.inductor.code import GENERATED


class OverwrittenBuffers:
    """Checks the first call of each launch in Inductor's generated code."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._reused = ReusedBuffers()

    def look(self, launch: LaunchInFlight, frame: FrameType) -> None:
        """Record the buffers that a launch overwrote, and that are read later, as memory evidence.

        frame -- one that the generated code has called
        """
        generated = hooks.caller()
        if generated is None or launch.template.site.kind != "triton":
            return
        if generated[0].co_name not in GENERATED or self._reused.seen(generated):
            return
        caller: FrameType | None = frame
        while caller is not None and caller.f_code is not generated[0]:
            caller = caller.f_back
        names = launch.template.site.names
        written = [(names[i], tensor) for i, tensor in launch.tensors(launch.template.writes)]
        for one in self._reused.overwritten(caller, written) if caller is not None else ():
            what = (
                f"overwrites {one.name}, which line {one.line} of the generated code reads: "
                f"{one.buffer} reuses its memory"
            )
            self._writer.append(MemoryEvidence(launch.index, "overwritten", (one.argument,), what, one.where))
