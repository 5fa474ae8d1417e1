"""A result of many kinds: tensors, numbers, strings, a bool, None, a dictionary, a tuple and a set.

A2 builds its set in another order.

- dtype [result]: result. The same bytes are int32, not float32.
- shape [result]: result. A tensor is 4 by 16, not 8 by 8.
- stride [result]: result or operator of aten::clone. Equal elements lie column by column.
- absent [result]: result. None instead of a tensor.
- present [result]: result. A tensor instead of None.
- number [result]: result. 4, not 3.
- fraction [result]: result. 0.25, not 0.5.
- sign [result]: result. 0.0, not -0.0.
- infinite [result]: result. An infinity instead of a NaN.
- string [result]: result. Another string.
- boolean [result]: result. False, not True.
- key [result]: result. A key of the dictionary has another name.
- gone [result]: result. The dictionary lacks a key.
- length [result]: result. A tuple has three tensors, not two.
- empty [result]: result. An empty tensor is 4 by 0, not 0 by 4.
- member [result]: result. A set has another member.
- nested [result]: result. A number differs in a list in a tuple.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2)


FAULTS: dict[str, Any] = {
    "none": lambda result: {},
    "dtype": lambda result: {"table": result["table"].view(torch.int32)},
    "shape": lambda result: {"table": result["table"].view(4, 16)},
    "stride": lambda result: {"table": result["table"].t().contiguous().t()},
    "absent": lambda result: {"table": None},
    "present": lambda result: {"nothing": result["table"]},
    "number": lambda result: {"count": 4},
    "fraction": lambda result: {"ratio": 0.25},
    "sign": lambda result: {"low": 0.0},
    "infinite": lambda result: {"mean": float("inf")},
    "string": lambda result: {"name": "scaled"},
    "boolean": lambda result: {"done": False},
    "key": lambda result: {"total": result.pop("count")},
    "gone": lambda result: result.pop("count") and {},
    "length": lambda result: {"pair": (*result["pair"], result["pair"][0])},
    "empty": lambda result: {"rest": result["rest"].view(4, 0)},
    "member": lambda result: {"seen": {0, 16}},
    "nested": lambda result: {"nested": ([1, 3], "end")},
}


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> dict[str, Any]:
        out = torch.zeros_like(x)
        scale[(4,)](x, out, BLOCK=16)
        result: dict[str, Any] = {
            "table": out.view(8, 8),
            "rest": torch.zeros(0, 4, device=device),
            "pair": (out[:32], out[32:]),
            "nothing": None,
            "count": 3,
            "ratio": 0.5,
            "mean": float("nan"),
            "low": -0.0,
            "name": "scale",
            "done": True,
            "seen": set([8, 0] if variant else [0, 8]),  # in the order in which they came: both hash to 0
            "nested": ([1, 2], "end"),
        }
        result.update(FAULTS[fault](result))
        return result

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
