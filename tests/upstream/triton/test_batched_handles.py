"""Triton's interpreter on arrays that are not NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from tracing.upstream.contract import Broken
from tracing.upstream.triton import batched_handles


def test_the_contract_holds_with_the_installed_versions() -> None:
    batched_handles.contract()


def test_a_builder_that_copies_into_numpys_own_arrays_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(self: Any, left: Any, right: Any, operation: Any) -> Any:
        return TensorHandle(operation(*np.array([left.data, right.data])), left.dtype)

    monkeypatch.setattr(InterpreterBuilder, "binary_op", copied)

    with pytest.raises((Broken, ValueError, TypeError)):
        batched_handles.contract()
