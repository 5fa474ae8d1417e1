"""Functions that are called around compilations by torch.compile."""

from __future__ import annotations

import subprocess
import sys

from tracing.upstream.torch import compile_callbacks

SCRIPT = """
from tracing.upstream.torch.compile_callbacks import call_around_compiles
called = []
call_around_compiles(lambda: called.append("started"), lambda: called.append("ended"))
import torch

def backend(graph, inputs):
    called.append("compiles")
    return graph.forward

torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1))
print(*called)
"""


def test_the_contract_holds_with_the_installed_versions() -> None:
    compile_callbacks.contract()


def test_both_functions_are_called_around_a_compile_of_a_torch_that_is_imported_later() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert done.stdout == "started compiles ended\n"
