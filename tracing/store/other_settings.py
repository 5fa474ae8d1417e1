"""Settings of torch and Triton with which a run was recorded, and that are others in this process."""

from __future__ import annotations

from tracing.environment import compile_settings
from tracing.model import Environment

_OF_COMPILES = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_", "TORCH_ALLOW_", "NVIDIA_")
_LOCAL = ("DIR", "PATH", "PATHS", "HOME", "CACHE", "CACHES", "FILE", "THREADS", "HOOK")  # ends of names


def other_settings(environment: Environment) -> dict[str, str | None]:
    """The environment variables to set as they were, None: not set.

    Those that name a file, a folder or a device are left out, as they belong to a machine.
    """
    was, now = environment.knobs, compile_settings()
    names = [name for name in {**was, **now} if name.startswith(_OF_COMPILES) and not name.endswith(_LOCAL)]
    return {name: was.get(name) for name in names if was.get(name) != now.get(name)}
