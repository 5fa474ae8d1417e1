"""The driver through which Triton compiles for a device, loads kernels and launches them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.runtime.driver import driver

from tracing.upstream.contract import require
from tracing.upstream.triton.backends import GPUTarget


def current_target() -> GPUTarget:
    """The target of the active driver. Raises RuntimeError if there is no GPU."""
    return driver.active.get_current_target()


def active_driver() -> Any:
    """The driver that is active; None if Triton has not looked for a GPU yet."""
    return driver._active  # `active` would look for a GPU


def benchmarker() -> Any:
    """The function with which the active driver measures a call."""
    return driver.active.get_benchmarker()


@contextmanager
def driven_by(replacement: object) -> Iterator[None]:
    """While active, Triton compiles and launches with this driver, which has the methods of DriverBase."""
    previous = driver._active  # None, not looked for yet, is restored as None
    driver.set_active(replacement)
    try:
        yield
    finally:
        driver.set_active(previous)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    previous, ours = active_driver(), object()
    with driven_by(ours):
        require(active_driver() is ours, "the driver that was set")
    require(active_driver() is previous, "the previous driver afterwards, without a search for a GPU")


def lacks_gpu(error: Exception) -> bool:
    """True if Triton raised this error because it has no driver: there is no GPU, and no virtual one."""
    return "active drivers" in str(error)  # triton.runtime.driver._create_driver
