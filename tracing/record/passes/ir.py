"""Writes the IR before and after each pass of one compilation, as the passes run.

The IR before a pass reaches the operating system before the pass runs, so it is kept even if the pass crashes
the process. IR is printed once per pass, because one pass's output is the next one's input.
"""

from __future__ import annotations

from typing import Any, Literal

from tracing.compiler.steps import Pass
from tracing.model import PassIR
from tracing.store import Pack, RunWriter


class PassIRWriter:
    """An observer of one compilation, which prints its IR after every pass."""

    def __init__(self, writer: RunWriter, pack: Pack, process: str, compilation: int) -> None:
        """`process` recorded the compilation; it need not be the one that runs the passes now."""
        self._writer = writer
        self._pack = pack
        self._process = process
        self._compilation = compilation
        self._manager = 0
        self._text = ""
        self._blob = ""

    def before(self, step: Pass, module: Any) -> None:
        if step.manager != self._manager:  # the stage's Python code may have changed the IR since
            self._manager = step.manager
            self._look(module)
        self._note(step, "before")

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self._look(module)
        self._note(step, "after")

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        """Do nothing: the recorder of the compilation keeps artefacts."""

    def ended(self) -> None:
        self._pack.close()

    def _look(self, module: Any) -> None:
        text = module.str()
        if text != self._text:  # comparing is cheaper than hashing
            self._text = text
            self._blob = self._pack.add(text)

    def _note(self, step: Pass, side: Literal["before", "after"]) -> None:
        self._writer.append(PassIR(self._process, self._compilation, step.index, side, self._blob))
