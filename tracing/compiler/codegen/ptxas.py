"""Assemble PTX into cubins with each assembler of Triton's wheel.

The command line is that of Triton's backend, so the default gives the same code as a launch of the
kernel. The wheel holds two assemblers of different CUDA versions; the architecture determines which one the
backend uses. ptxas is not deterministic: occasionally it allocates registers differently for the same PTX.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tracing.errors import Problem
from tracing.upstream.triton.backends import GPUTarget, PTXASError, default_assembler, make_backend
from tracing.upstream.triton.knobs import assembled_by, assembler_tools, ptxas_options

LEVELS = (0, 1, 2, 3)
_DEFAULTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Assembler:
    """One ptxas of this installation."""

    name: str  # "ptxas-blackwell"
    version: str  # of CUDA, "13.3"
    path: Path


def assemblers(arch: int) -> list[Assembler]:
    """The assemblers that Triton uses, that for this architecture first; may be empty."""
    known = [Assembler(*tool) for tool in assembler_tools()]
    default = default_assembler(arch) if known else None
    return sorted(known, key=lambda one: one.path != default)


def tools() -> list[Path]:
    """The assemblers of this installation, and those that Triton's knobs name."""
    return [one.path for one in assemblers(80)]


def assemble(
    ptx: str,
    arch: int,
    *,
    opt: int | None = None,
    assembler: str | None = None,
    options: Mapping[str, Any] = _DEFAULTS,
) -> bytes:
    """The cubin of a PTX text.

    arch      -- compute capability times ten: 80, 90, 100
    opt       -- ptxas' optimisation level 0..3; None: as Triton's backend calls it, which is 3
    assembler -- "ptxas" or "ptxas-blackwell"; None: the one that Triton takes for this architecture
    options   -- of the compilation (enable_fp_fusion, ptx_options), as the backend's parse_options takes them

    Cost: one process, 0.05-5 s. Triton's knobs are changed while it runs: one thread at a time.

    Raises Problem if there is no such assembler, or with its message if it rejects the text.
    """
    backend = make_backend(GPUTarget("cuda", arch, 32))
    level = [] if opt is None else ["--opt-level", str(opt)]
    extra = [options.get("ptx_options") or ptxas_options(), *level]
    parsed = backend.parse_options({**options, "ptx_options": " ".join(extra).strip() or None})
    with _assembler(assembler, arch), contextlib.redirect_stdout(io.StringIO()):  # it prints PTX that fails
        try:
            cubin: bytes = backend.make_cubin(ptx, {}, parsed, arch)
        except (PTXASError, subprocess.SubprocessError) as error:
            raise Problem(f"{assembler or 'ptxas'} refused the PTX: {_reason(str(error))}") from None
    return cubin


@contextlib.contextmanager
def _assembler(name: str | None, arch: int) -> Iterator[None]:
    if name is None:
        yield
        return
    known = {one.name: one for one in assemblers(arch)}
    if name not in known:
        raise Problem(f"there is no assembler {name}", f"this installation has {', '.join(known) or 'none'}")
    with assembled_by(known[name].path):
        yield


def _reason(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if "fatal" in line or "error   :" in line]
    return (errors or lines or ["it said nothing"])[0]
