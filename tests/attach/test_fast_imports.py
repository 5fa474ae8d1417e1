"""A debugged program imports torch and Triton without garbage collection, which goes on afterwards."""

from __future__ import annotations

import subprocess
import sys

COLLECTIONS = """
import gc
from tracing.attach import fast_imports
if {fast}:
    fast_imports.switch_on()
started = []
gc.callbacks.append(lambda phase, info: started.append(phase))
import numpy
print(len(started) > 10, gc.isenabled())  # one is due when it is enabled
"""

ABANDONED = """
import sys
from tracing.attach import fast_imports
import debugpy.server.api
sys.settrace(lambda *event: None)
fast_imports.switch_on()
import numpy
print("imported")
"""


WARNED = """
import warnings
warnings.simplefilter("error")
import tracing
recording = tracing.recording  # imports torch
warnings.warn("the program's")
"""


def collected(fast: bool) -> str:
    command = [sys.executable, "-c", COLLECTIONS.format(fast=fast)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_library_is_imported_without_garbage_collection_which_is_enabled_afterwards() -> None:
    assert (collected(fast=False), collected(fast=True)) == ("True True", "False True")


def test_a_library_is_imported_although_the_debugger_has_ended() -> None:
    done = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True, check=True)

    assert done.stdout == "imported\n"


def test_what_this_project_imports_does_not_warn_and_the_filters_stay() -> None:
    done = subprocess.run([sys.executable, "-c", WARNED], capture_output=True, text=True)

    assert done.stderr.endswith("\nUserWarning: the program's\n"), done.stderr
