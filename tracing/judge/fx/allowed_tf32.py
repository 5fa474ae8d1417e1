"""Which products of float32 a recorded program may have computed in TF32."""

from __future__ import annotations

from tracing.model import CompiledGraph, Environment, TracedCall

_BY_CUDNN = frozenset(["conv", "rnn"])  # torch allows them by default


def allowed_tf32(environment: Environment, called: CompiledGraph | TracedCall) -> frozenset[str]:
    """Of "matmul", "conv" and "rnn", those that its settings and its GPU allowed.

    A run of an earlier version has no settings but the precision of products: what it may have allowed.
    """
    if not environment.has_tf32:
        return frozenset()
    if called.tf32 is not None:
        return frozenset(called.tf32)
    return _BY_CUDNN if called.precision == "highest" else _BY_CUDNN | {"matmul"}
