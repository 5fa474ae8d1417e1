"""Parse MLIR's text of a pipeline, `builtin.module(cse,tt.func(canonicalize{max-iterations=2}))`.

The text is what `--pass-pipeline` takes and what `pass_manager.get_pipeline_str()` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracing.errors import Problem

_NAME = re.compile(r"[\w.-]+")
_REPRODUCER = re.compile(r'\bmlir_reproducer: \{\s*pipeline: "([^"]*)"')
_OPEN, _CLOSE = "({", ")}"
_EXAMPLE = "write it as MLIR does: builtin.module(cse,tt.func(canonicalize{max-iterations=2}))"


@dataclass(frozen=True, slots=True)
class PassText:
    """One pass as its text states it."""

    name: str  # "tritongpu-pipeline"
    options: Mapping[str, str]
    anchors: tuple[str, ...] = ()  # the operations it is nested in, outermost first: "builtin.module"


def passes_in(text: str) -> tuple[PassText, ...]:
    """The passes of a pipeline in order; raises Problem where the text is not one."""
    return tuple(_passes(text, ()))


def reproducer_passes(text: str) -> tuple[PassText, ...]:
    """The passes that a reproducer's file names in addition to its module, as `-run-reproducer` of
    triton-opt.

    Raises Problem if it names none.
    """
    match = _REPRODUCER.search(text)
    if match is None:
        raise Problem(
            "the file names no passes to run: it is no reproducer",
            "TRITON_REPRODUCER_PATH=PREFIX makes Triton write some; or name passes",
        )
    return passes_in(match[1])


def options_in(text: str) -> dict[str, str]:
    """`num-stages=3 flag` as a mapping; an option without a value is `true`, as for MLIR."""
    pairs = (part.partition("=") for part in _split(text, " "))
    return {name: _unwrapped(value) if equals else "true" for name, equals, value in pairs}


def _passes(text: str, anchors: tuple[str, ...]) -> Iterator[PassText]:
    for part in _split(text, ","):
        name = _NAME.match(part)
        if name is None:
            raise Problem(f"a pass cannot begin with {part!r} in the pipeline", _EXAMPLE)
        rest = part[name.end() :].strip()
        if rest.startswith("(") and rest.endswith(")"):
            yield from _passes(rest[1:-1], (*anchors, name[0]))
        elif not rest or (rest.startswith("{") and rest.endswith("}")):
            yield PassText(name[0], options_in(rest[1:-1]), anchors)
        else:
            raise Problem(f"{rest!r} after {name[0]} in the pipeline is neither passes nor options", _EXAMPLE)


def _split(text: str, separator: str) -> Iterator[str]:
    # at separators outside of brackets and quotes
    depth, quote, start = 0, "", 0
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == separator and depth == 0:
            yield from _nonempty(text[start:at])
            start = at + 1
        else:
            depth += (character in _OPEN) - (character in _CLOSE)
    if depth or quote:
        raise Problem(f"a bracket or quote is left open in the pipeline {text!r}", _EXAMPLE)
    yield from _nonempty(text[start:])


def _nonempty(part: str) -> Iterator[str]:
    if part.strip():
        yield part.strip()


def _unwrapped(value: str) -> str:
    wrapped = len(value) > 1 and value[0] + value[-1] in ("{}", "''", '""')
    return value[1:-1] if wrapped else value
