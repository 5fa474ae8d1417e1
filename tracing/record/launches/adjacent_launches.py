"""The launches of generated code that directly follow each other, as the recorder asks for them."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from tracing.launch import hooks
from tracing.record.launches.launch_template import LaunchTemplate
from tracing.upstream.inductor.adjacent_launches import LaunchingLine, following_launch
from tracing.upstream.inductor.code import GENERATED

LOST = "digests after launches of generated code that an exception followed"  # not covered


def following(template: LaunchTemplate) -> LaunchingLine | None:
    """The launch that directly follows the one that generated code now makes on this thread; None: none does.

    template -- of the launch that is made
    """
    frame = _generated_frame()
    if frame is None or template.wrapped or template.site.kind != "triton":
        return None
    line = following_launch(frame.f_code, frame.f_lineno, frame.f_globals, template.after.positions)
    return None if line is None else LaunchingLine(frame.f_code, line)


def follows(line: LaunchingLine) -> bool:
    """True if the launch that generated code now makes on this thread is this one."""
    frame = _generated_frame()
    return frame is not None and (frame.f_code, frame.f_lineno) == line


def _generated_frame() -> FrameType | None:
    code = _launching_code()
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def _launching_code() -> CodeType | None:
    launched = hooks.caller()
    return launched[0] if launched is not None and launched[0].co_name in GENERATED else None
