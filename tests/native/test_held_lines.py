"""A fatal signal writes the lines that a recording holds back, and then ends the process as before."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracing.native.extension import NotCompiledError, extension

PROGRAM = """
import ctypes, faulthandler, os, signal, sys
from tracing.native.extension import extension
module, path = extension(sys.argv[1]), sys.argv[2]
lines, text = [b'{"index":0}', (), b'{"index":1}'], bytearray(b'{"id":7}\\n')
{before}
module.keep(lines, path)
module.keep(text, path + ".text")
lines.append(b'{"index":2}')
{last}
"""


def ended(
    path: Path, last: str, before: str = "", module: str = "launches"
) -> subprocess.CompletedProcess[str]:
    try:
        extension(module)
    except NotCompiledError as error:
        pytest.skip(f"no compiled form: {error}")
    program = PROGRAM.replace("{before}", before).replace("{last}", last)
    return subprocess.run(
        [sys.executable, "-c", program, module, str(path)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("last", "number"),
    [
        ("os.abort()", signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGBUS)", signal.SIGBUS),
        ("ctypes.string_at(0)", signal.SIGSEGV),
    ],
)
@pytest.mark.parametrize("module", ["launches", "operator_observer"])
def test_held_lines_are_on_disk_after_a_fatal_signal(
    module: str, last: str, number: int, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    done = ended(path, last, module=module)
    assert done.returncode == -number, done.stderr
    assert path.read_text() == '{"index":0}\n{"index":1}\n{"index":2}\n'
    assert path.with_suffix(".text").read_text() == '{"id":7}\n'


@pytest.mark.parametrize("before", ["faulthandler.enable()", ""])
def test_faulthandler_still_prints_the_stack(before: str, tmp_path: Path) -> None:
    last = "os.abort()" if before else "faulthandler.enable(); os.abort()"
    done = ended(tmp_path / "lines", last, before)
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in done.stderr and 'File "<string>"' in done.stderr
    assert (tmp_path / "lines").read_text().count("index") == 3


def test_two_handlers_of_which_each_is_the_earlier_one_end_the_process(tmp_path: Path) -> None:
    last = "module.release(lines); module.release(text); module.keep(lines, path); os.abort()"
    done = ended(tmp_path / "lines", f"faulthandler.enable(); {last}")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.count("Fatal Python error") == 1
    assert (tmp_path / "lines").read_text().count("index") == 3


@pytest.mark.parametrize(
    "last",
    [
        "module.release(lines); module.release(text); os.abort()",
        "if not os.fork(): os.abort()\nos.wait()",
        "lines.clear()",
        "os.kill(os.getpid(), signal.SIGTERM)",
    ],
)
def test_nothing_else_writes_them(last: str, tmp_path: Path) -> None:
    ended(tmp_path / "lines", last)
    assert not list(tmp_path.iterdir())


def test_lines_with_too_long_a_path_are_refused(tmp_path: Path) -> None:
    done = ended(tmp_path / ("x" * 5000), "")
    assert "too long a path" in done.stderr
