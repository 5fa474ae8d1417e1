"""Runs that fail: in eager, or only when they are compiled.

Two runs that fail alike are compared in part.

Recordings: A = fault=none; A2 = fault=none

- eager [failure] (B = fault=eager): outcome; failing. Only B fails, before its first launch.
- compiled [failure] (B = fault=compiled): outcome; failing. Only B fails, after its launches.
- alike [failure] (A = fault=eager; A2 = fault=eager; B = fault=eager): in part; failing. Both fail alike in
  eager.
- late [failure] (A = fault=compiled; A2 = fault=compiled; B = fault=compiled): in part; failing. Both fail
  alike when compiled, after equal launches.
- kind [failure] (A = fault=eager; A2 = fault=eager; B = fault=kind): outcome; failing. An IndexError, not a
  ValueError.
- message [failure] (A = fault=eager; A2 = fault=eager; B = fault=message): outcome; failing. Of 4 rows, not
  of 3.
- address [failure] (A = fault=address; A2 = fault=address; B = fault=address): in part; failing. The message
  holds the address of an object.
- scalar [failure] (A = fault=compiled; A2 = fault=compiled; B = fault=scalar): configuration of scale; launch
  0; failing; hidden. Both fail alike, and a kernel is launched with another factor before.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload

built = 0  # the second time is for the recording


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


def error(fault: str) -> Exception:
    if fault == "kind":
        return IndexError("no rows: 3")
    if fault == "address":
        return ValueError(f"no rows in {object()!r}")
    return ValueError("no rows: 4" if fault == "message" else "no rows: 3")


def build(device: str, fault: str = "none") -> Workload:
    global built
    built += 1
    recording = built == 2

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        scale[(4,)](x, out, 3.5 if fault == "scalar" else 2.5, BLOCK=16)
        if recording if fault in ("compiled", "scalar") else fault != "none":
            raise error(fault)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
