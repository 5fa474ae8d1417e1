"""The settings that torch takes from environment variables when it is imported."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from torch._logging import _internal as logs
from torch.utils._config_module import ConfigModule

from tracing.upstream.contract import require
from tracing.upstream.patch import replaced

# by module and name: what an entry has, except for what code has set
Settings: TypeAlias = Mapping[str, Mapping[str, tuple[Any, ...]]]
_FACTS = ("default", "env_value_default", "env_value_force")


def evaluated_settings() -> tuple[Settings, tuple[str, ...]]:
    """The settings of every configuration module that is imported, as the present variables give them.

    Each module's source is executed once more, in some 10 ms; the module itself does not change. The second
    value names the modules for which this fails: their source is missing, or works only in its own module.
    """
    settings: dict[str, Mapping[str, tuple[Any, ...]]] = {}
    failed = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, ConfigModule):
            try:
                settings[name] = _evaluated(module)
            except Exception:
                failed.append(name)
    return settings, tuple(failed)


def take_settings(now: Settings, before: Settings) -> None:
    """Give torch the settings that differ; one that code has set stays."""
    for name, settings in now.items():
        module = sys.modules[name]
        for entry, facts in settings.items():
            if facts != before.get(name, {}).get(entry):
                for fact, value in zip(_FACTS, facts, strict=True):
                    setattr(module._config[entry], fact, value)
                _forget(module, entry)


def _forget(module: types.ModuleType, entry: str) -> None:
    # what was derived from the value of an entry
    if (dirty := vars(module).get("_hash_dirty_var")) is not None:
        dirty.set(True)
        module._mark_get_dict_dirty(entry)
    elif "_is_dirty" in vars(module):  # before torch 2.13
        module._is_dirty = True  # type: ignore[attr-defined]


def set_up_logs() -> None:
    """Set up torch's logs as the present variables say."""
    logs._init_logs()


def _evaluated(module: ConfigModule) -> dict[str, tuple[Any, ...]]:
    path = Path(module.__file__ or "")
    fresh = types.ModuleType(f"{module.__name__}__anew")
    fresh.__file__, fresh.__package__ = str(path), module.__package__
    with replaced(sys.modules, fresh.__name__, fresh):
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), fresh.__dict__)
    entries: Mapping[str, Any] = fresh._config
    return {name: tuple(getattr(entry, fact) for fact in _FACTS) for name, entry in entries.items()}


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    from torch._inductor import config

    module, name = config.__name__, "max_autotune"
    settings, _ = evaluated_settings()
    same = settings == evaluated_settings()[0]
    require(module in settings and same, "settings that are evaluated once more")
    own = {module: {name: settings[module][name]}}
    other = {module: {name: ("another", *settings[module][name][1:])}}
    take_settings(other, own)
    changed = sys.modules[module]._config[name].default
    take_settings(own, other)
    require(changed == "another", "a default that is set")
    require(callable(logs._init_logs), "logs that are set up once more")
