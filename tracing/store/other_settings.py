"""Settings of torch and Triton with which a run was recorded, and that are others in this process."""

from __future__ import annotations

from pathlib import Path

from tracing.environment import compile_settings, variables
from tracing.model import Environment

_OF_COMPILES = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_", "TORCH_ALLOW_", "NVIDIA_")
_LOCAL = ("DIR", "PATH", "PATHS", "HOME", "CACHE", "CACHES", "FILE", "THREADS", "HOOK")  # ends of names
# They name what a compile reads or executes: IR in place of a stage's, assemblers, libraries.
_INPUTS = ("TRITON_OVERRIDE_DIR", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBDEVICE_PATH")


def is_set(name: str) -> bool:
    """True if this process has an environment variable."""
    return name in variables()


def other_settings(environment: Environment) -> dict[str, str | None]:
    """The environment variables to set as they were, None: not set.

    Those that name a file, a folder or a device are left out, as they belong to a machine; but not what a
    compile reads, if it is on this one.
    """
    was, now = environment.knobs, compile_settings()
    names = [name for name in {**was, **now} if name.startswith(_OF_COMPILES) and not name.endswith(_LOCAL)]
    names += [name for name in _INPUTS if Path(was.get(name, "")).is_absolute() and Path(was[name]).exists()]
    return {name: was.get(name) for name in names if was.get(name) != now.get(name)}
