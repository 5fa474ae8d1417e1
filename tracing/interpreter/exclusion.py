"""Keep what Triton's compiler reads of its language apart from what the interpreter puts in its place.

While a launch is interpreted, `triton.language` computes with NumPy, for the whole process. A compile on
another thread would find that language instead of the one that builds IR: it must wait, and so must the
launch until the compile has read the language.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from triton.compiler.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.jit import JITFunction

from tracing.upstream.patch import patched, replaced

LANGUAGE = threading.RLock()  # held by whoever needs the language as it is now, or parses Python


@contextmanager
def compiles_wait() -> Iterator[None]:
    """While active, compiles on any thread wait for launches that are interpreted, and launches for compiles.

    Two steps of a compile read the language: hashing a function with all that it uses, and making IR of it.
    Everything after that is C++. Cost: a lock for each of the two.
    """
    keyed = next(one for one in JITFunction.__mro__ if "cache_key" in vars(one))
    cache_key = property(_waiting(vars(keyed)["cache_key"].fget))
    with ExitStack() as stack:
        for source in (ASTSource, GluonASTSource):
            stack.enter_context(patched(source, "make_ir", _waiting))
        stack.enter_context(replaced(keyed, "cache_key", cache_key))
        yield


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def waiting(*arguments: Any, **keywords: Any) -> Any:
        with LANGUAGE:
            return original(*arguments, **keywords)

    return waiting
