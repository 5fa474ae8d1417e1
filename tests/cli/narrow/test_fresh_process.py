"""A script of `tracing minify` in a fresh process."""

from __future__ import annotations

from pathlib import Path

from tracing.analyze.minify.trial import Trial
from tracing.cli.narrow.minify.fresh_process import fresh_run


def test_a_process_that_starts_slowly_does_not_fail_as_a_graph_that_hangs(tmp_path: Path) -> None:
    (script := tmp_path / "repro.py").write_text("import time\ntime.sleep(2)\n")

    assert not fresh_run(script, Trial("dies", "it did not end within 1 s", error="timeout"), 1).fails


def test_a_script_loads_a_case_that_imports_the_files_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "faulty_pass.py").write_text("")
    (case := tmp_path / "case.py").write_text("import faulty_pass\ndef build(device): ...\n")
    load = f"from tracing.program.case import load_case\nload_case({str(case)!r})\nraise SystemExit(1)\n"
    (tmp_path / "out").mkdir()
    (script := tmp_path / "out" / "repro.py").write_text(load)

    assert fresh_run(script, Trial("differs", "output 0: compiled is off"), 60, loads_case=True).fails
