"""A dispatch mode that sees every operator, and lets torch.compile compile meanwhile."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """To be given a `__torch_dispatch__`."""

    # Without it torch refuses to run a higher order operator (cond, a Triton kernel in eager mode) at all.
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Otherwise torch.compile runs everything in eager mode while any dispatch mode is active.
        return True
