"""Readers of IR end also on texts that no compiler writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tracing.analyze.passes import llvm, ptx_text
from tracing.analyze.passes.ir_text import canonical, plain
from tracing.analyze.passes.locations import FRAMES, STACKS, located
from tracing.analyze.passes.operations import operations, without_locations
from tracing.analyze.passes.renaming import renamed
from tracing.analyze.passes.spelling import same
from tracing.errors import Problem
from tracing.mlir.generic import parsed

COUNT = 200_000
UNITS = ('\\\\"', "%a", "%a, ", " ", "\n", "a", ".section .debug {", "define \n", " = phi ", "loc(")
READERS: dict[str, Callable[[str], object]] = {
    "operations": operations,
    "without_locations": without_locations,
    "ttir": lambda text: located("ttir", text),
    "llir": lambda text: located("llir", text),
    "ptx": lambda text: located("ptx", text),
    "readable": llvm.readable,
    "without_debug": ptx_text.without_debug,
    "same llir": lambda text: same(text, f"{text}x", "llir"),
    "renamed": lambda text: renamed(text, f"{text}x"),
    "plain": plain,
    "parsed": parsed,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_ends(reader: str) -> None:
    for unit in UNITS:
        for before in ("", '"', "#loc1 = loc(", "!1 = "):
            try:
                READERS[reader](before + unit * (COUNT // len(unit)))
            except (Problem, ValueError):
                continue


def test_locations_that_double_are_cut() -> None:
    twice = "\n".join(f"#loc{n} = loc(callsite(#loc{n - 1} at #loc{n - 1}))" for n in range(1, 60))
    fused = (
        "#loc60 = loc(callsite(fused[" + ", ".join(f'"{n}":{n}:1' for n in range(1, 300)) + "] at #loc59))"
    )
    text = f'#loc0 = loc("k.py":1:1)\n{twice}\n{fused}\n%0 = a.b loc(#loc60)\n'

    (one,) = located("ttir", text)

    assert len(one.stacks) <= STACKS
    assert max(map(len, one.stacks)) <= FRAMES


def test_aliases_that_double_are_compared_by_a_digest() -> None:
    text = "\n".join(["#a0 = x", *(f"#a{n} = [#a{n - 1}, #a{n - 1}]" for n in range(1, 80)), "a.b #a79"])

    assert len(canonical(plain(text))) < 100_000
    assert canonical(plain(text)) != canonical(plain(text.replace("= x", "= y")))
