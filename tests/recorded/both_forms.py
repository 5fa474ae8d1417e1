"""One program, recorded by the Python and by the compiled form of the recorder at the same time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from handmade.records import INFO

from tracing import store
from tracing.environment.compiled_parts import SWITCH
from tracing.model import Operator, OperatorSignature
from tracing.record.launches.launch_recorder import LaunchRecorder


def operators(run: store.Run) -> list[Operator]:
    return [operator for process in run.processes(OperatorSignature) for operator in run.operators(process)]


def in_both_forms(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: Callable[[], object],
    order: tuple[str, str] = ("python", "compiled"),
    **options: Any,
) -> tuple[store.Run, store.Run]:
    """The runs of the Python and of the compiled form, of one program."""
    writers = {form: store.create(path / form, INFO) for form in order}
    with ExitStack() as stack:
        for form in order:
            monkeypatch.setenv(SWITCH, "0" if form == "python" else "1")
            stack.enter_context(LaunchRecorder(writers[form], "none", **options))
        program()
    return store.Run(writers["python"].path), store.Run(writers["compiled"].path)
