"""Prevent Triton's compiler from reading the language while the interpreter has patched it.

While a launch is interpreted, `triton.language` computes with NumPy in the whole process. A compile on
another thread needs the language that builds IR. So compiles wait for interpreted launches, and launches
for compiles that read the language.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracing.upstream.triton.jit import around_language_reads

# held by a thread that needs the language in its current state, or parses Python
LANGUAGE = threading.RLock()


@contextmanager
def compiles_wait() -> Iterator[None]:
    """While active, compiles on any thread wait for launches that are interpreted, and launches for compiles.

    Cost: one lock for each of the two steps of a compile that read the language.
    """
    with around_language_reads(_waiting):
        yield


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def waiting(*arguments: Any, **keywords: Any) -> Any:
        with LANGUAGE:
            return original(*arguments, **keywords)

    return waiting
