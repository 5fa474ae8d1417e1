"""Replacements that overlap, also without nesting."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.torch.dispatch_modes import OperatorMode, is_active


class Owner:
    def name(self) -> str:
        return "a"

    @staticmethod
    def static() -> str:
        return "a"


def around(word: str) -> Any:
    return lambda original: lambda *args: f"{word}({original(*args)})"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_replacements_end_in_any_order_and_the_others_stay(order: tuple[int, ...]) -> None:
    before = vars(Owner)["name"]
    blocks = [patched(Owner, "name", around(word)) for word in "xyz"]
    active = []
    for word, block in zip("xyz", blocks, strict=True):
        block.__enter__()
        active.append(word)
    for number in order:
        blocks[number].__exit__(None, None, None)
        active.remove("xyz"[number])
        expected = "a"
        for word in active:
            expected = f"{word}({expected})"
        assert Owner().name() == expected

    assert vars(Owner)["name"] is before


def test_an_attribute_that_was_absent_is_absent_afterwards() -> None:
    a, b = replaced(Owner, "other", 1), replaced(Owner, "other", 2)
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    assert vars(Owner)["other"] == 2
    b.__exit__(None, None, None)

    assert "other" not in vars(Owner)


def test_a_static_method_and_an_item_are_restored_as_they_were() -> None:
    items: dict[str, Any] = {"name": len}
    descriptor = vars(Owner)["static"]
    a, b = replaced(Owner, "static", staticmethod(lambda: "b")), patched(items, "name", around("x"))
    a.__enter__()
    b.__enter__()
    assert (Owner.static(), items["name"]("four")) == ("b", "x(4)")
    a.__exit__(None, None, None)
    b.__exit__(None, None, None)

    assert vars(Owner)["static"] is descriptor and items == {"name": len}


def test_threads_that_overlap_leave_the_attribute_as_it_was() -> None:
    before, barrier = vars(Owner)["name"], threading.Barrier(4)

    def work(number: int) -> None:
        for turn in range(50):
            barrier.wait()
            with patched(Owner, "name", around(str(number))):
                if (number + turn) % 2:
                    barrier.wait()
                assert f"{number}(" in Owner().name()
            if not (number + turn) % 2:
                barrier.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert vars(Owner)["name"] is before


class Counting(OperatorMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.count = 0

    def __torch_dispatch__(self, func: Method, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_that_ends_before_an_inner_one_leaves_that_one_active() -> None:
    from torch.utils import _python_dispatch

    flags = [name for name in vars(_python_dispatch) if name.startswith("_is_in_")]
    flag_values = [getattr(_python_dispatch, name) for name in flags]
    a, b, x = Counting(), Counting(), torch.ones(1)
    with ExitStack() as inner:
        with a:
            inner.enter_context(b)
        assert is_active(b) and not is_active(a)
        x + 1

    assert (a.count, b.count) == (0, 1)
    assert not is_active(b)
    assert flags and [getattr(_python_dispatch, name) for name in flags] == flag_values
