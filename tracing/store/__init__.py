"""A run directory: append-only records and content-addressed blobs.

    runs/silu-20261120-231502/
      run.json                              what runs, written before it starts
      kernels-<host>-<rank>-<pid>.ndjson    one line a record; also signatures-, outputs-, uncovered-, ...
      launches-<host>-<rank>-<pid>.ndjson.zst   the same, compressed as it is written; also digests-
      blobs/<digest>.zst                    IR and sources, each stored once
      blobs/<host>-<rank>-<pid>-<n>.zst     a pack: the IR of one compilation, pass after pass;
                                            packed-*.ndjson.zst tells which part of it is which blob

Nothing is ever rewritten, and every complete line is written to the operating system immediately, so a run is
readable even if its process was killed: a truncated last line is ignored. If its process noted its end, the
file was truncated later, and reading it fails there. One process writes one file of a
kind; all of them are read together.
"""

from __future__ import annotations

from tracing.store.blobs import blob_name
from tracing.store.reader import Run, rank_of
from tracing.store.recording import being_recorded
from tracing.store.run_folder import create, now, reopened
from tracing.store.runs import (
    is_latest,
    is_run,
    listing,
    names_program,
    near_runs,
    open_run,
    recorded,
    require_folder,
)
from tracing.store.writer import Pack, RunWriter

__all__ = [
    "Pack",
    "Run",
    "RunWriter",
    "being_recorded",
    "blob_name",
    "create",
    "is_latest",
    "is_run",
    "listing",
    "names_program",
    "near_runs",
    "now",
    "open_run",
    "rank_of",
    "recorded",
    "reopened",
    "require_folder",
]
