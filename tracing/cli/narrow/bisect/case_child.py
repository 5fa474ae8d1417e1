"""One build of `tracing bisect CASE` in a new Python process, for a machine with a GPU."""

from __future__ import annotations

import json
import sys

from tracing.compiler.child import respond


def main() -> None:
    """Evaluate the build that the first argument describes, and send the result through the pipe."""
    spec, pipe = sys.argv[1], int(sys.argv[2])
    name, target, seed, *arguments = json.loads(spec)
    from tracing.program.device import Device
    from tracing.program.experiment import Experiment
    from tracing.replay.partial_case import PartialCase

    device = Device(target)
    case = PartialCase(Experiment(device.load(name), device, int(seed)))
    respond(lambda: case.evaluate(*arguments), pipe)


if __name__ == "__main__":
    main()
