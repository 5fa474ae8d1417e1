"""Load the commands of `help triton` into gdb, with gdb's `source`.

Runs in gdb's own Python, which does not know this project: this folder, and the one with the package
`tracing`, are put on the path.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gdb

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[2])]

import gdb_adapter  # noqa: E402  # its path is known from here on
import gdb_calls  # noqa: E402
import gdb_commands  # noqa: E402
import gdb_hints  # noqa: E402
import gdb_inlined  # noqa: E402
import gdb_life  # noqa: E402
import gdb_passes  # noqa: E402
import gdb_stops  # noqa: E402
import gdb_values  # noqa: E402

gdb.execute(f"source {HERE / 'quiet.gdb'}", to_string=True)
for command in gdb_commands.COMMANDS:
    command()
gdb_passes.watch()
gdb_life.watch()
gdb_calls.watch()
gdb_values.watch()
gdb_stops.watch()
gdb_hints.watch()
gdb_inlined.watch()
gdb_adapter.watch()
