"""Gives variables that a program sets before it imports torch the effect that they have under `python`.

This process has imported torch before the program, which may set `os.environ["TORCH_LOGS"] = …`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tracing import environment

_TORCH = "torch"
_LOGS = ("TORCH_LOGS", "TORCH_TRACE")  # and TORCH_LOGS_OUT, ...
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def torch_not_imported() -> Iterator[None]:
    """While active, torch is not among the imported modules until somebody imports it.

    It then has the settings that the variables of that time give. Not covered are variables that torch reads
    in C++ when it is loaded, except for the number of threads.
    """
    hidden = _Hidden(partial(_take_settings, dict(environment.variables())))
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        hidden.show()


def _take_settings(before: Mapping[str, str]) -> None:
    import torch

    from tracing.upstream.torch.import_settings import evaluated_settings, set_up_logs, take_settings

    now = environment.variables()
    changed = {name for name in {*before, *now} if now.get(name) != before.get(name)}
    of_torch = sorted(name for name in changed if name.startswith(("TORCH", "PYTORCH")))
    if of_torch:
        settings, failed = evaluated_settings()
        with environment.changed({name: before.get(name) for name in changed}):
            old, _ = evaluated_settings()
        take_settings(settings, old)
        for module in failed:
            lost = (
                f"{', '.join(of_torch)} may have no effect on {module}, which cannot be evaluated once more"
            )
            print(f"tracing: {lost}: set it in the shell", file=sys.stderr)
    if any(name.startswith(_LOGS) for name in changed):
        set_up_logs()
    for name in changed.intersection(_THREADS):
        value = now.get(name, "")
        if value.isdecimal() and int(value):
            torch.set_num_threads(int(value))


class _Hidden(MetaPathFinder, Loader):
    # finds torch, and returns the module that exists

    def __init__(self, imported: Callable[[], None]) -> None:
        self._imported = imported
        names = [name for name in sys.modules if name.partition(".")[0] == _TORCH]
        self._modules = {name: sys.modules.pop(name) for name in names}
        self._torch = self._modules[_TORCH]
        self._spec = self._torch.__spec__

    def show(self) -> None:
        """Make all modules imported ones; nothing if they are."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            sys.modules.update(self._modules)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == _TORCH else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.show()
        return self._torch

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
        self._imported()
