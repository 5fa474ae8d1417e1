"""A case that fails while it runs; `mute=true` by an exception whose message cannot be had."""

from tracing import Workload


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def build(device: str, mute: bool = False) -> Workload:
    def fn() -> None:
        raise Mute if mute else ValueError("this model is wrong")

    return Workload(fn)
