"""The import of Triton's native library."""

from __future__ import annotations

import subprocess
import sys

from tracing.upstream.triton import libtriton_import


def test_the_contract_holds_with_the_installed_versions() -> None:
    libtriton_import.contract()


SCRIPT = """
from tracing.upstream.triton.libtriton_import import call_before_passes
reached = []
call_before_passes(lambda manager, module, tag: reached.append(tag))
from tracing.upstream.triton import libtriton
libtriton.contract()
print(reached)
"""


def test_a_pass_manager_of_a_triton_imported_later_calls_the_function() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert done.stdout == "['contract']\n"
