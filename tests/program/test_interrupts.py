"""An interrupt that Python ignores is sent once more; what else it ignores is reported as before."""

from __future__ import annotations

import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tracing.program.interrupts import interrupts_kept


class Held:
    """Something that can be referred to weakly."""


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The exceptions that Python ignores and reports; SIGINT interrupts also in a background job."""
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: ignored.append(error.exc_type))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield ignored
    signal.signal(signal.SIGINT, before)


def call_back(callback: Callable[[], object]) -> None:
    held = Held()
    reference = weakref.ref(held, lambda _: callback())
    del held
    assert reference() is None


def test_an_interrupt_in_a_callback_of_a_weak_reference_ends_a_system_call_after_it(
    reported: list[Any],
) -> None:
    started = time.monotonic()
    with interrupts_kept(), pytest.raises(KeyboardInterrupt):
        call_back(lambda: signal.raise_signal(signal.SIGINT))
        time.sleep(30)

    assert time.monotonic() - started < 30
    assert reported == []


def test_a_second_interrupt_ends_at_once(reported: list[Any]) -> None:
    with interrupts_kept():
        with pytest.raises(KeyboardInterrupt):
            call_back(lambda: signal.raise_signal(signal.SIGINT))
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # the first one, once more
            time.sleep(30)


def test_other_exceptions_and_a_handler_of_the_program_are_left_as_they_are(reported: list[Any]) -> None:
    def handler(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    with interrupts_kept():
        call_back(lambda: 1 / 0)
        signal.signal(signal.SIGINT, handler)
        call_back(lambda: signal.raise_signal(signal.SIGINT))

    assert reported == [ZeroDivisionError, KeyboardInterrupt]
