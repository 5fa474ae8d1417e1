"""Two threads that launch kernels, each on buffers of its own, in turns.

A2's second thread comes first. With `at_once` nobody waits for anybody.

- plain [thread]: equal; hidden. Only the turns differ.
- at_once [thread] (A = fault=at_once,variant=0; A2 = fault=at_once,variant=1; B = fault=at_once,variant=1):
  equal; hidden. The threads launch at once.
- scalar [thread]: configuration of shift. A scalar of the second thread differs.
- poked [thread]: host; runs b. The host changes what the second thread reads next.
- operator [thread]: operator of aten::add_*; runs b. An operator in the second thread.
- missing [thread]: missing of double. The second thread leaves a launch out.
- shared [thread] (A = fault=shared,variant=0; A2 = fault=shared,variant=0; B = fault=shared,variant=1):
  order. Both threads change one buffer, in another order.
"""

import threading
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def double(ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) * 2)


@triton.jit
def shift(in_ptr, out_ptr, term, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + term)


class Turns:
    """Threads that run their steps in an order that is given; at once if none is."""

    def __init__(self, order: list[int]) -> None:
        self.order, self.condition = order, threading.Condition()

    def take(self, thread: int, step: Callable[[], object]) -> None:
        if not self.order:
            step()
            return
        with self.condition:
            self.condition.wait_for(lambda: self.order[0] == thread, timeout=20)
            step()
            self.order = [*self.order[1:], -1]  # never empty
            self.condition.notify_all()


def change(shared: torch.Tensor, second: bool) -> None:
    if second:
        shift[(1,)](shared, shared, 0.5, BLOCK=32)
    else:
        double[(1,)](shared, BLOCK=32)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        buffers, outs, shared = [x[0] + 0, x[1] + 0], [x[2] + 0, x[3] + 0], x[4] + 0
        order = [1, 1, 0, 0, 1, 0, 1, 0] if variant else [0, 0, 1, 0, 1, 1, 0, 1]
        turns = Turns([] if fault == "at_once" else order)

        def work(thread: int) -> None:
            second, buffer = thread == 1, buffers[thread]

            def reads() -> None:
                if second and fault == "poked":
                    buffer.numpy()[5] = 0.5
                if second and fault == "operator":
                    buffer.add_(1)
                shift[(1,)](buffer, outs[thread], 1.5 if second and fault == "scalar" else 0.5, BLOCK=32)

            def changes() -> None:
                if not (second and fault == "missing"):
                    double[(1,)](buffer, BLOCK=32)

            turns.take(thread, changes)
            turns.take(thread, reads)
            turns.take(thread, lambda: double[(1,)](outs[thread], BLOCK=32))
            turns.take(thread, lambda: change(shared, second) if fault == "shared" else None)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [*buffers, *outs, shared]

    return Workload(lambda x: launches(x), (torch.rand(5, 32, device=device),))
