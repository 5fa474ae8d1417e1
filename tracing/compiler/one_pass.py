"""Run one pass on a text of IR in a child process; returns its result, or how it crashed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracing.compiler.adders import adder, new_context
from tracing.compiler.child import in_child
from tracing.compiler.early_end import EarlyEnd, early_end_of
from tracing.compiler.generic_text import GENERIC
from tracing.compiler.opt import printing
from tracing.compiler.opt.pipeline_text import PassText
from tracing.upstream.triton.libtriton import ir

_BEGINS = b"tracing: the pass begins\n"


@dataclass(frozen=True, slots=True)
class PassOutput:
    """The result of passes on a text."""

    before: str | None  # the IR as MLIR prints it; None: the text is no IR
    after: str | None = None  # None: the pass died, or was not run
    ending: EarlyEnd | None = None


def run_passes(text: str, passes: Sequence[PassText], *, seconds: float, generic: bool = False) -> PassOutput:
    """Run one or more passes on a text of IR.

    passes  -- as from `pipeline_text.passes_in`; none: the text is parsed and printed
    seconds -- time limit
    generic -- print in MLIR's generic form

    Cost: a fork and the passes.
    """

    def call() -> dict[str, str]:
        if generic:
            printing.set_options([GENERIC])
        module = _module(text)
        if module is None:
            return {}
        before = module.str_nodebug()
        os.write(2, _BEGINS)
        for one in passes:
            manager = ir.pass_manager(module.context)
            adder(one.name).add(manager, one.options)
            manager.run(module, one.name)
        return {"before": before, "after": module.str_nodebug()}

    ended = in_child(call, seconds)
    if ended.failure and _BEGINS.decode() not in ended.stderr:
        return PassOutput(None)  # the parser died
    if ended.failure:
        name = passes[-1].name if passes else "the parser"
        return PassOutput(text, ending=early_end_of(ended, name))
    return PassOutput(ended.result.get("before"), ended.result.get("after"))


def _module(text: str) -> Any:
    context = new_context()
    with tempfile.NamedTemporaryFile("w", prefix="tracing-", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        try:
            module = ir.parse_mlir_module(file.name, context)
        except RuntimeError:
            return None
    module.context = context
    return module if module.verify() else None
