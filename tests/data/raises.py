"""A case that fails while it runs."""

from tracing import Workload


def fn() -> None:
    raise ValueError("this model is wrong")


def build(device: str) -> Workload:
    return Workload(fn)
