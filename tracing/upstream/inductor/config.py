"""Inductor's settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
import torch._inductor.config as _inductor

from tracing.upstream.contract import require
from tracing.upstream.patch import replaced

# Measures a template with and without what may be fused into it; torch 2.15 warns of its old name.
MEASURE_FUSIONS = next(
    name for name in ("benchmark_template_fusion", "benchmark_epilogue_fusion") if hasattr(_inductor, name)
)


def settings_changed(settings: Mapping[str, object]) -> AbstractContextManager[None]:
    """While active, this thread compiles with these settings of torch._inductor.config."""
    result: AbstractContextManager[None] = _inductor.patch(dict(settings))
    return result


def setting_names() -> list[str]:
    """The names of all settings: "triton.multi_kernel"."""
    settings: Mapping[str, object] = _inductor._config  # type: ignore[attr-defined, unused-ignore]
    return list(settings)


def setting(name: str) -> Any:
    """The value of a setting on this thread: "cpu_backend"."""
    return getattr(_inductor, name)


@contextmanager
def settings_changed_everywhere(settings: Mapping[str, object], cache_tag: str) -> Iterator[None]:
    """While active, all threads compile with these settings, without reusing earlier compiled code.

    cache_tag -- becomes part of the keys under which compiled graphs are stored
    """
    tag = f"{torch.compiler.config.cache_key_tag}{cache_tag}"
    with ExitStack() as stack:
        _change(stack, _inductor, settings)
        _change(stack, torch.compiler.config, {"cache_key_tag": tag})  # type: ignore[attr-defined, unused-ignore]
        yield


def _change(stack: ExitStack, config: Any, settings: Mapping[str, object]) -> None:
    # torch keeps a setting in the thread that sets it; other threads read the defaults
    stack.enter_context(config.patch(settings))
    for name, value in settings.items():
        stack.enter_context(replaced(config._config[name], "default", value))


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require({"cpu_backend", "triton.multi_kernel"} <= {*setting_names()}, "the names of the settings")
    before = setting("cpu_backend")
    other = "triton" if before != "triton" else "cpp"
    with settings_changed({"cpu_backend": other}):
        require(setting("cpu_backend") == other, "a setting that is changed")
    seen: list[object] = []
    with settings_changed_everywhere({"cpu_backend": other}, "contract"):
        thread = threading.Thread(target=lambda: seen.append(setting("cpu_backend")))
        thread.start()
        thread.join()
    require(seen == [other], "a setting that other threads see")
    require(setting("cpu_backend") == before, "the previous setting afterwards")
