"""Print IR in MLIR's generic form, which has one syntax for the operations of all dialects."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from tracing.compiler.adders import new_context
from tracing.compiler.child import in_child
from tracing.compiler.opt import printing
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import ir

GENERIC = "-mlir-print-op-generic"


def generic_texts(texts: Sequence[str], *, seconds: float) -> list[str]:
    """IR as MLIR prints it generically, without locations.

    texts   -- modules in any form
    seconds -- time limit

    Cost: a fork, and reading and printing each text. Raises Problem if this Triton lacks the symbols
    of the option, if a text does not parse, and after the time limit.
    """
    printing.require()

    def call() -> list[str]:
        printing.set_options([GENERIC])
        return [_generic(text) for text in texts]

    ended = in_child(call, seconds)
    if ended.failure:
        raise Problem(f"IR cannot be printed generically: {ended.failure}")
    return list(ended.result)


def _generic(text: str) -> str:
    context = new_context()
    with tempfile.NamedTemporaryFile("w", prefix="tracing-", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return str(module.str_nodebug())
