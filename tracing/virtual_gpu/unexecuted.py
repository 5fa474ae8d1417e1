"""Support for programs whose launches are compiled but not executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
import triton.testing

from tracing.upstream.patch import Method, patched
from tracing.virtual_gpu.querying_module import program_asks

# Functions by which programs check their results; here no kernel has computed their arguments.
_JUDGES: tuple[tuple[Any, str, Any], ...] = (
    (torch, "allclose", True),
    (torch, "equal", True),
    (torch.testing, "assert_close", None),
    (triton.testing, "assert_close", None),
    (np.testing, "assert_allclose", None),
    (np.testing, "assert_array_equal", None),
    (np.testing, "assert_array_almost_equal", None),
)


@contextmanager
def results_not_judged() -> Iterator[None]:
    """While active, the program's comparisons of tensors succeed: its kernels have written nothing."""
    with ExitStack() as stack:
        for owner, name, answer in _JUDGES:
            if hasattr(owner, name):
                stack.enter_context(patched(owner, name, _holding(answer)))
        yield


def _holding(answer: Any) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        def judged(*args: Any, **kwargs: Any) -> Any:
            return answer if program_asks(triton=True) else original(*args, **kwargs)

        return judged

    return wrapper
