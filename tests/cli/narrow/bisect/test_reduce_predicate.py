"""The predicates of `tracing reduce` with a COMMAND: the pass must contribute to the failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded.runs import recorded_passes

from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.cli.narrow.bisect.reduce_predicate import predicate
from tracing.model import Compilation

UNTOUCHED = "module {\n  tt.func @f() {\n    tt.return\n  }\n}\n"


def test_of_ir_that_a_command_always_calls_bad_only_what_the_pass_changes_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = recorded_passes(tmp_path, ("softmax", "sm_80"))
    (kernel,) = run.records(Compilation)
    passes = passes_of(run, kernel)
    record = find_pass(passes, "tritongpu-coalesce")
    holds = predicate(run, kernel, passes, record, ["grep", "-q", "no such text", "{after}"], 30)
    whole = holds.generic(run.text(record.before))

    holds.require(whole)

    assert "let COMMAND read {before}, too" in capfd.readouterr().err.replace("\n", " ")
    assert holds(whole)
    assert not holds(UNTOUCHED)
