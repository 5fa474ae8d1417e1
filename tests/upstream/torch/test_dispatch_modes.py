"""Dispatch modes and the switches that turn them off."""

from __future__ import annotations

import threading
from typing import Any

import torch

from tracing.upstream.torch import dispatch_modes


def test_the_contract_holds_with_the_installed_versions() -> None:
    dispatch_modes.contract()


class Names(dispatch_modes.OperatorMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_a_pushed_mode_is_that_of_one_thread() -> None:
    mode, active = Names(), list[bool]()
    with dispatch_modes.pushed(mode):
        other = threading.Thread(target=lambda: active.append(dispatch_modes.is_active(mode)))
        other.start()
        other.join()
        active.append(dispatch_modes.is_active(mode))

    assert active == [False, True]


def test_a_mode_is_popped_after_an_exception() -> None:
    mode = Names()
    try:
        with dispatch_modes.pushed(mode):
            raise ValueError
    except ValueError:
        torch.ones(1)

    assert not mode.names
