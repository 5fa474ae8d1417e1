"""What to type where no GPU can launch the builds of a kernel."""

from __future__ import annotations

import shlex

from tracing.model import Compilation
from tracing.store import Run


def by_artefacts(run: Run, chosen: Compilation) -> str:
    """The command that searches the passes of a kernel without a GPU, but for what judges its PTX."""
    return f"`tracing bisect {shlex.quote(str(run.path))} --kernel {chosen.hash[:12]} -- COMMAND {{ptx}}`"
