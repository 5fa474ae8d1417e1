"""How one execution of a candidate ended, and whether it fails as the whole graph does."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tracing.analyze.bisect_case.symptom import error_core

_AT_SOURCE = re.compile(r"\bat \d+:\d+:$")  # line and column in the source of a kernel

TrialKind: TypeAlias = Literal[
    "right", "differs", "raises", "dies", "unstable", "violates", "other kernels", "no answer"
]
TrialVerdict: TypeAlias = Literal["pass", "fail", "unresolved"]
FAILURES = ("differs", "raises", "dies", "unstable", "violates", "other kernels")


@dataclass(frozen=True, slots=True)
class TrialInput:
    """An input of an executed graph."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    grad: bool = False
    shares: bool = False  # its storage with another input


@dataclass(frozen=True, slots=True)
class Trial:
    """How one execution ended."""

    kind: TrialKind
    text: str  # for people, one line
    how: tuple[str, ...] = ()  # "value", "layout", ...: in which respects it fails; violated constraints
    results: tuple[str, ...] = ()  # names of the results that fail
    failing: tuple[str, ...] = ()  # the nodes among them; empty: not known, or only inputs and gradients fail
    nonfinite: tuple[str, ...] = ()  # nodes and gradients with NaN or infinity, where values are compared
    error: str = ""  # the type of the exception, or the signal
    seconds: float = 0.0
    nodes: int = 0  # of the executed graph, with its inputs and its output
    code: str = ""  # of the executed graph
    inputs: tuple[TrialInput, ...] = ()
    returned: tuple[str, ...] = ()  # nodes that it returns, and need not
    numbers: Mapping[str, int] = field(default_factory=dict)  # inputs that are no tensors


@dataclass(frozen=True, slots=True)
class ScriptForm:
    """How a script of a graph is written."""

    interpreted: bool = False  # Triton's interpreter executes the Triton kernels that Inductor writes
    exact: bool = True  # results are compared with those of exact arithmetic; False: with eager's
    compile_only: bool = False  # Triton kernels are compiled for a GPU, and nothing is launched
    loads_case: bool = False  # the case, which changes the compiler, is loaded first


def script_forms(trial: Trial, *, virtual: bool) -> list[ScriptForm]:
    """The forms of a script that can reproduce this failure, the simplest first.

    virtual -- there is no GPU: a failure of Inductor's Triton kernels needs the interpreter
    """
    exact = (False, True) if (trial.kind, trial.how) == ("differs", ("value",)) else (True,)
    modes = (False, True) if virtual else (False,)
    forms = [ScriptForm(interpreted, one) for one in exact for interpreted in modes]
    # the interpreter executes a program's kernels outside of the compiled graph
    compiled = virtual and trial.kind in ("raises", "dies")
    if compiled:
        forms.append(ScriptForm(compile_only=True))
    return [*forms, *(replace(one, loads_case=True) for one in forms)]


def one_line(message: str) -> str:
    """An error message up to the first line that does not introduce another one.

    Triton's compiler prints the source up to a caret between the introduction and the error: it is left out.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    source = next((number for number, line in enumerate(lines) if _AT_SOURCE.search(line)), None)
    caret = next((number for number, line in enumerate(lines) if set(line) == {"^"}), len(lines))
    if source is not None and source < caret < len(lines) - 1:
        return " ".join([*lines[: source + 1], lines[caret + 1]])
    last = next((number for number, line in enumerate(lines) if not line.endswith(":")), 0)
    return " ".join(lines[: last + 1])


def verdict(trial: Trial, wanted: Trial, read: Collection[str] = ()) -> TrialVerdict:
    """Whether a candidate fails as the whole does; unresolved if it fails differently, or in eager.

    read -- the nodes from which the failing nodes of the whole are computed, themselves included; empty: not
            known

    A candidate fails differently if a value becomes NaN or infinite that the whole computes as a finite one,
    or if only nodes fail from which no failing node of the whole is computed.
    """
    if trial.kind == "right":
        return "pass"
    if trial.kind != wanted.kind:
        return "unresolved"
    if trial.kind in ("raises", "dies"):
        same = (trial.error, error_core(trial.text)) == (wanted.error, error_core(wanted.text))
        return "fail" if same else "unresolved"
    elsewhere = bool(read and trial.failing) and set(read).isdisjoint(trial.failing)
    new = set(trial.nonfinite) - set(wanted.nonfinite)
    same = bool(set(trial.how) & set(wanted.how)) and not elsewhere and not new
    return "fail" if same else "unresolved"
