"""`@triton.autotune`: its trials, and the run in which it chooses a configuration."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import FrameType

from triton.runtime.autotuner import Autotuner

from tracing.upstream.contract import require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched


def around_launches(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each launch of an autotuned kernel calls `wrapper(original)`.

    The arguments are those of Autotuner.run: autotuner, *args, **kwargs. `autotuner.cache` maps a tuning key
    to the chosen configuration; a key that is in it is not tuned.
    """
    return patched(Autotuner, "run", wrapper)


def around_trials(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, measuring one configuration calls `wrapper(original)`.

    The first argument is the autotuner; the result is a list of milliseconds (median, fast, slow), infinite
    for a configuration that does not run.
    """
    return patched(Autotuner, "_bench", wrapper)


def restored(autotuner: Autotuner) -> tuple[str, ...] | None:
    """The arguments that each trial sets to zero, or to their values before it; None: hooks may do so."""
    hooked = autotuner.user_defined_pre_hook or autotuner.user_defined_post_hook
    if hooked or any(one.pre_hook for one in autotuner.configs):
        return None
    return (*autotuner.reset_to_zero, *autotuner.restore_value)


def is_autotuner(frame: FrameType) -> bool:
    """True for a frame of the autotuner's own code."""
    return bool(frame.f_globals.get("__name__") == Autotuner.__module__)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(Autotuner, "run", "_bench")
    require_parameters(Autotuner.__init__, "reset_to_zero", "restore_value", "pre_hook", "post_hook")
    require_parameters(Autotuner._bench, "config")
    require_parameters(Autotuner.__init__, "fn", "configs", "key")
