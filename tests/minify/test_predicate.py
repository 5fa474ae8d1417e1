from __future__ import annotations

from tracing.minify.predicate import said


def test_an_error_that_wraps_another_is_named_with_it() -> None:
    wrapped = RuntimeError("backend='inductor' raised:\nAssertionError: no layout\n\nSet TORCH_LOGS for more")

    assert said(wrapped) == "RuntimeError: backend='inductor' raised: AssertionError: no layout"
    assert said(ValueError()) == "ValueError"
