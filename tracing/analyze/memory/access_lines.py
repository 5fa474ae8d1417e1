"""The line of an access to memory: of the program, or, in a kernel that Inductor generated, of the kernel."""

from __future__ import annotations

from pathlib import Path

from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.model import Kernel, KernelLaunch
from tracing.store import Run


def access_line(run: Run, rank: int, launch: KernelLaunch, where: str | None) -> str:
    """Where a kernel accesses memory: "ops.py:12", or "`tl.load(in_ptr0 + x0)`, which computes model.py:7".

    where -- as recorded, "ops.py:12"; of a generated kernel this file was in Inductor's cache
    """
    computed = launch_lines(run, rank, launch)
    code = _code(run, launch.kernel, where) if where and computed else ""
    if not code:
        return where or ""
    files = dict.fromkeys(f"{Path(one.file).name}:{one.line}" for one in computed)
    return f"`{code}`, which computes {', '.join(files)}"


def _code(run: Run, kernel: Kernel, where: str) -> str:
    # the source of a line of a kernel; "": the line is not in it
    (name, _, number), (path, _, first) = where.rpartition(":"), (kernel.file or "").rpartition(":")
    if kernel.source is None or Path(path).name != name:
        return ""
    lines = run.text(kernel.source).splitlines()
    position = int(number) - int(first)
    return lines[position].strip() if 0 <= position < len(lines) else ""
