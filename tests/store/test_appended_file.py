"""An interrupt in the middle of an append neither loses nor repeats nor damages what was appended."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tracing.store.appended_file import AppendedFile
from tracing.store.run_files import content, private


@pytest.mark.parametrize("compressed", [True, False])
def test_interrupts_at_any_instruction_leave_a_complete_file(compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("lines.zst" if compressed else "lines")
    file = AppendedFile(private(path, "ab"), compressed=compressed)
    interrupts = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        until = time.monotonic() + 1
        number = 0
        while time.monotonic() < until:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + number % 97 * 1e-6)
                while True:
                    line = number
                    number += 1  # first: whether an interrupted append has taken the line is not known
                    file.append(b"%d\n" % line)
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    file.complete()
    file.close()

    lines = [int(line) for line in b"".join(content(path)).splitlines()]
    assert lines == sorted(set(lines))  # whole lines, each once, in order
    assert number - interrupts <= len(lines) <= number
    assert interrupts > 100
