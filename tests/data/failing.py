"""A case that fails in one of its runs: `how=raise`, `interrupt` like Ctrl-C, `crash` or `exit`.

file -- counts the runs, since a crashed run leaves nothing else
"""

import os
import signal
from pathlib import Path

import torch

from tracing import Workload


def build(device: str, file: str = "", how: str = "raise", bad: int = 3) -> Workload:
    counted = Path(file)

    @torch.compiler.disable
    def fn(x: torch.Tensor) -> torch.Tensor:
        calls = counted.read_text() if counted.exists() else ""
        counted.write_text(calls + ".")
        if len(calls) // 2 + 1 == bad and len(calls) % 2:  # eager calls it, too
            if how == "interrupt":
                raise KeyboardInterrupt
            if how == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exit":
                os._exit(0)
            raise RuntimeError("the third time")
        return x + 1

    return Workload(lambda x: fn(x), (torch.ones(4, device=device),))
