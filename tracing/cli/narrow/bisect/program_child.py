"""One build of `tracing bisect PROGRAM` in a new Python process, for a machine with a GPU."""

from __future__ import annotations

import json
import sys

import msgspec

from tracing.cli.narrow.bisect.program_builds import ProgramSpec
from tracing.compiler.child import respond
from tracing.program.user_program import UserProgram


def main() -> None:
    """Evaluate the build that the first argument describes, and send the result through the pipe."""
    given, pipe = sys.argv[1], int(sys.argv[2])
    described, *arguments = json.loads(given)
    spec = msgspec.convert(described, type=ProgramSpec)
    from tracing.program.device import Device
    from tracing.replay.partial_program import PartialProgram

    device = Device(spec.target, select=False, virtual=spec.virtual)
    program = PartialProgram(UserProgram(spec.words), device, spec.seed)
    respond(lambda: program.evaluate(*arguments), pipe)


if __name__ == "__main__":
    main()
