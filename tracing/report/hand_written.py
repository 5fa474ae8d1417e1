"""How the hand-written kernels of a program are checked, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracing.errors import page
from tracing.model import Kernel
from tracing.model.first_names import first_names

_NAMED = 4  # kernels that one sentence names
_CHECKED = "docs/case.md#check-a-hand-written-kernel"  # how a case checks a kernel of the program


def one_by_one() -> str:
    """How several hand-written kernels, of which one is wrong, are distinguished."""
    return f"check them one by one, each in a case of its own: {page(_CHECKED)}"


def reference_text(kernels: int, *, of_case: bool = True) -> str:
    """How a number of hand-written kernels that nothing checks can be checked.

    of_case -- False: a program launched them, and only a case is compared with eager
    """
    them = "it" if kernels == 1 else "them one by one, each in a case of its own"
    write = "" if of_case else "write a case, which is a file with build(device), and "
    return (
        f"    to check {them}: {write}begin the function that launches it with "
        f"`if not torch.compiler.is_compiling(): return REFERENCE`: {page(_CHECKED)}"
    )


def suspect_text(kernels: Sequence[Kernel]) -> str:
    """`only compiled launches the hand-written softmax_kernel (model.py:9): it may be to blame, ...`."""
    copied = [(one.name, one.copied[0]) for one in kernels]
    named = first_names(
        [f"{name} ({Path(one.user_file).name}:{one.user_line})" for name, one in copied], _NAMED
    )
    it = "it" if len(kernels) == 1 else "one of them"
    return f"    only compiled launches the hand-written {named}: {it} may be to blame, or the code around it"


UNKNOWN_EAGER = "`tracing run` without --no-passes records which kernels eager launches"


def unchecked_text(kernels: Sequence[str], *, known: bool = True) -> str:
    """`eager launches softmax_kernel, too: nothing checks what it computes`.

    known -- False: the run does not say which kernels eager launches
    """
    them = "they compute" if len(kernels) > 1 else "it computes"
    names = first_names(kernels, _NAMED)
    if not known:
        return f"if eager launches {names}, too, nothing checks what {them}: {UNKNOWN_EAGER}"
    return f"eager launches {names}, too: nothing checks what {them}"
