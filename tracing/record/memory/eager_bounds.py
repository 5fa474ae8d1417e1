"""Checks the launches of a case in eager, which are not recorded, for accesses outside of their arguments."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracing.launch.memory.out_of_bounds import OutOfBoundsError, OutsideAccesses
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.store import RunWriter


@dataclass(slots=True)
class EagerBounds:
    """What launches in eager did outside of their arguments."""

    stopped: OutOfBoundsError | None = None  # the access that ended eager
    accesses: Sequence[tuple[str, OutsideAccesses]] = ()  # with the kernel's name

    def unlike(self, compiled: Sequence[tuple[str, OutsideAccesses]]) -> list[str]:
        """A sentence for each of these accesses that the compiled launches do not make, too."""
        known = {_site(*one) for one in compiled}
        return [
            f"in eager {kernel}: {one.record(0).what}" + (f" ({one.where})" if one.where else "")
            for kernel, one in self.accesses
            if _site(kernel, one) not in known
        ]


@contextmanager
def bounds_checked(*, allow_out_of_bounds: bool) -> Iterator[EagerBounds]:
    """While active, launches of the virtual GPU are checked as under a recorder, and are not recorded.

    allow_out_of_bounds -- False: an access outside of every storage ends the block, and does not happen
    """
    bounds = EagerBounds()
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        (Path(folder) / "blobs").mkdir()
        with closing(RunWriter(Path(folder))) as writer:
            recorder = LaunchRecorder(
                writer, "none", operators="none", graphs=False, allow_out_of_bounds=allow_out_of_bounds
            )
            try:
                with recorder:
                    yield bounds
            except OutOfBoundsError as error:
                error.args = (f"in eager {error}",)
                bounds.stopped = error
            bounds.accesses = recorder.outside_accesses


def _site(kernel: str, one: OutsideAccesses) -> tuple[str, str, str, str]:
    return kernel, one.argument, one.kind, one.where
