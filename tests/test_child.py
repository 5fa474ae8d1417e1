"""Calls in a child process: by several threads at once, too."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

from tracing.compiler.child import in_child


def _most_forks_at_once() -> int:
    active = most = 0

    def before() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        time.sleep(0.05)

    def behind() -> None:
        nonlocal active
        active -= 1

    os.register_at_fork(before=before, after_in_parent=behind)
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda number: in_child(lambda: number, 20), range(4)))
    assert [one.result for one in ended] == [0, 1, 2, 3]
    return most


def test_threads_fork_one_after_the_other_as_packages_with_locks_ask() -> None:
    ended = in_child(_most_forks_at_once, 60)  # a child, as what is registered at a fork stays

    assert ended.result == 1, ended
