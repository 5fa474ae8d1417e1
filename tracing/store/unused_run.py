"""A run that is deleted: for what records only because it needs a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tracing.store.writer import RunWriter


@contextmanager
def unused_run() -> Iterator[RunWriter]:
    """While active, the writer of a run in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        (Path(folder) / "blobs").mkdir()
        with closing(RunWriter(Path(folder))) as writer:
            yield writer
