"""A function that is called with a module when it is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tracing.upstream.import_hook import when_imported


def test_the_function_receives_the_executed_module_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_later.py").write_text("value = 3")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    values: list[int] = []
    when_imported("imported_later", lambda module: values.append(module.value))

    import imported_later  # type: ignore[import-not-found]

    del sys.modules[imported_later.__name__]
    import imported_later

    assert values == [3]
