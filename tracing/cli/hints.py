"""The commands to type next: of those that this installation has."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from tracing.cli.app import app
from tracing.model import KernelLaunch, PassRecord


def of_kernel(run: Path, kernel: str) -> list[str]:
    """What can be asked about a kernel; N stands for a pass that `tracing passes` lists.

    kernel -- a name that means one compilation of the run
    """
    of_it = f"{quote(str(run))} --kernel {quote(kernel)}"
    return _known(
        f"tracing passes {of_it}",
        f"tracing bisect {of_it} -- COMMAND",
        f"tracing lit {of_it} --pass N",
        f"tracing debug {of_it} --pass N",
    )


def of_launch(run: Path, launch: KernelLaunch) -> list[str]:
    """What can be asked about one launch and its kernel."""
    of_it = f"{quote(str(run))} --launch {launch.index}"
    kernel = launch.kernel.hash[:12] if launch.kernel.kind == "triton" else ""
    return [*_known(f"tracing repro {of_it}"), *(of_kernel(run, kernel) if kernel else [])]


def of_results(a: Path, b: Path) -> list[str]:
    """How the kernels are found that make the results of two runs differ."""
    return _known(f"tracing compare {quote(str(a))} {quote(str(b))} --swap")


def of_unfinished(run: Path, kernel: str, record: PassRecord) -> list[str]:
    """How a pass that did not end is looked at and run again, alone."""
    of_it = f"{quote(str(run))} --kernel {quote(kernel)} --pass {record.index}"
    return _known(
        f"tracing passes {of_it} > before.mlir",
        f"tracing opt before.mlir --pass-pipeline={quote(record.pipeline)}",
        f"tracing debug {of_it}",
    )


def _known(*commands: str) -> list[str]:
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    return [command for command in commands if command.split()[1] in known]
