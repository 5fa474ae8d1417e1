"""A case whose user presses Ctrl-C while it is built."""

from tracing import Workload


def build(device: str) -> Workload:
    raise KeyboardInterrupt
