"""Configures lit for these tests: `triton-opt` is `tracing opt`, and FileCheck is that of Triton's wheel.

`lit -D suite=FOLDER tests/lit` runs the tests of another folder with it, for example Triton's own.
"""

# ruff: noqa: F821  # lit defines config and lit_config
import contextlib
import os
import sys
import tempfile
from pathlib import Path

import lit.formats
import triton

from tracing.compiler.opt import printing
from tracing.compiler.tools import filecheck_path
from tracing.errors import Problem

here = Path(__file__).parent
project = here.parent.parent
suite = lit_config.params.get("suite", str(here))

config.name = "debug-triton" if suite == str(here) else suite
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ll"]
config.test_source_root = suite
config.test_exec_root = tempfile.mkdtemp(prefix="lit-")
config.excludes = ["Inputs"]
config.available_features.add("triton-" + ".".join(triton.__version__.split(".")[:2]))
config.available_features.add("asserts")  # Triton's wheels are built with assertions, and so have -debug-only
with contextlib.suppress(Problem):
    printing.require()
    config.available_features.add("symbols")
config.environment["PYTHONPATH"] = os.pathsep.join(
    [*filter(None, [os.environ.get("PYTHONPATH")]), str(project)]  # which may hold another Triton
)
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"  # as in Triton's own lit.cfg.py
# a variable before a command is written for a shell; lit's own wants `env`
config.substitutions += [(r"(?<!\S)(?<!env )(?=(?:[A-Z][A-Z0-9_]*=\S+ +)+triton-opt )", "env ")]
config.substitutions += [
    (r"(?<![\w/.-])triton-opt(?![\w-])", f"{sys.executable} -m tracing opt --stand-in"),
    (r"(?<![\w/.=-])mlir-translate(?![\w-])", f"{sys.executable} -m tracing mlir-translate"),
    (r"(?<![\w/.=-])(?<!tracing )opt(?= -)", f"{sys.executable} -m tracing llvm-opt"),
    (r"(?<![\w/.=-])llc(?![\w-])", f"{sys.executable} -m tracing llc"),
    (r"(?<![\w/.-])FileCheck(?![\w-])", str(filecheck_path())),
]
