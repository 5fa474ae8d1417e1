"""Run ninja with progress: steps done, time left, and the CPU time and memory of the whole build.

All output of ninja goes to build.log in the build folder. The terminal shows one line of progress and, after
a failure, the message of the first file that failed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from scripts.build import failure
from scripts.build.failure import SHOWN, STEP
from scripts.machine import GB, output
from scripts.pins import Problem

QUIET = 60  # seconds between lines of progress where they do not overwrite one another


@dataclass(frozen=True)
class Figures:
    """Time, CPU time and memory of a build; the sum over its interrupted runs."""

    steps: int
    wall: float
    cpu: float
    peak: int  # bytes, all its processes together

    def __add__(self, other: Figures) -> Figures:
        sums = (self.steps + other.steps, self.wall + other.wall, self.cpu + other.cpu)
        return Figures(*sums, max(self.peak, other.peak))

    def __str__(self) -> str:
        cpu, wall = duration(self.cpu), duration(self.wall)
        memory = f"at most {self.peak / GB:.1f} GB of memory"
        return f"{self.steps} steps, {cpu} of CPU time, {wall} by the clock, {memory}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def known_targets(build: Path) -> set[str]:
    """Names that ninja can be asked to build, without the paths of files."""
    rows = output("ninja", "-C", str(build), "-t", "targets", "all").splitlines()
    return {name for name in (row.partition(":")[0] for row in rows) if "/" not in name}


def outstanding(build: Path, targets: Sequence[str]) -> list[str]:
    """Descriptions of the steps that remain, by a dry run."""
    command = ("ninja", "-C", str(build), "-n", *targets)
    done = subprocess.run(command, env=status_line(), capture_output=True, text=True)
    if done.returncode:
        wrote = (done.stderr.strip() or done.stdout.strip()).removeprefix("ninja: error: ")
        raise Problem(
            f"{build} cannot be built: {wrote}", "is the source whole? make clean ALL=1 starts anew"
        )
    return [match.group(3) for match in map(STEP.match, done.stdout.splitlines()) if match]


def status_line() -> dict[str, str]:
    return {**os.environ, "NINJA_STATUS": "[%f/%t] "}


def run(build: Path, targets: Sequence[str], jobs: int, say: Callable[[str], None]) -> Figures:
    """Build targets, resuming an interrupted build; return the figures of all its runs together.

    Raises Problem with the message of the first failed file, KeyboardInterrupt after ninja has ended.
    """
    expected = len(outstanding(build, targets))
    command = ("ninja", "-C", str(build), f"-j{jobs}", *targets)
    return watch(command, build / "build.log", expected, say, status_line())


def watch(
    command: Sequence[str], log: Path, expected: int, say: Callable[[str], None], environment: dict[str, str]
) -> Figures:
    """Run a command that runs ninja: log its output and show its progress."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    progress = Progress(expected, say)
    with log.open("a", encoding="utf-8", buffering=1) as file:
        file.write(f"\n$ {' '.join(command)}\n")
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        use = Use(process.pid)
        try:
            failed, last = follow(process, file.write, progress)
        finally:
            progress.end()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            cpu = max(cpu, use.cpu)  # if it ended early, no sum includes processes that were not waited for
            figures = Figures(progress.earlier + progress.done, time.monotonic() - start, cpu, use.peak)
            total = keep(log, figures, whole=process.returncode == 0)
    if process.returncode:
        raise failure.diagnose(failed or last, log)
    return total


def follow(
    process: subprocess.Popen[str], keep: Callable[[str], object], progress: Progress
) -> tuple[list[str], list[str]]:
    """The output of a process from its first failed step on, and its last lines; all of it is logged."""
    failed: list[str] = []
    last: deque[str] = deque(maxlen=SHOWN)
    assert process.stdout
    try:
        for line in process.stdout:
            keep(line)
            own = line.strip()
            progress.count(own)
            last.append(own)
            if failed or own.startswith(("FAILED: ", "CMake Error")):
                failed.append(own)
            if own.startswith("ninja: build stopped"):  # after which setuptools would build once more
                end_below(process.pid)
    finally:
        process.wait()  # after Ctrl-C ninja deletes what is half written
    return failed, list(last)


class Progress:
    """One line of progress: overwritten on a terminal, printed rarely elsewhere."""

    def __init__(self, expected: int, say: Callable[[str], None]) -> None:
        self.expected, self.say, self.terminal = expected, say, sys.stderr.isatty()
        self.done, self.earlier, self.shown = 0, 0, time.monotonic()
        # Times and finished steps of the last minutes: the first steps of a build are its shortest.
        self.recent = deque([(self.shown, 0)], maxlen=5)

    def count(self, line: str) -> None:
        match = STEP.match(line)
        # A build may run another one inside: ignore its smaller counts.
        if not match or 2 * int(match.group(2)) < self.expected:
            return
        done, total = int(match.group(1)), int(match.group(2))
        if done < self.done:  # one build after the other, as setup.py builds documentation last
            self.earlier += self.done
        self.done = done
        now = time.monotonic()
        if now - self.shown < (1 if self.terminal else QUIET):
            return
        self.shown = now
        since, before = self.recent[0]
        left = (now - since) / max(1, self.done - before) * (total - self.done)
        if now - self.recent[-1][0] >= QUIET:
            self.recent.append((now, self.done))
        says = f"{self.done} of {total} steps, {duration(left)} left"
        if self.terminal:
            print(f"\r\033[K  {says}  {match.group(3)[-70:]}", end="", file=sys.stderr, flush=True)
        else:
            self.say(says)

    def end(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Used(NamedTuple):
    memory: int  # bytes
    cpu: float  # seconds, with those of children that ended


class Use:
    """Peak memory and CPU time of a process and its descendants, sampled every second."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak, self.cpu = pid, 0, 0.0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while (now := used(self.pid)).memory:
            self.peak, self.cpu = max(self.peak, now.memory), max(self.cpu, now.cpu)
            time.sleep(1)


def used(root: int) -> Used:
    """Memory and CPU time of a process and its descendants; zero if it ended."""
    each = family(root).values()
    return Used(sum(one.memory for one in each), sum(one.cpu for one in each))


def end_below(root: int) -> None:
    """Terminate the descendants of a process, which then ends by itself."""
    for pid in family(root).keys() - {root}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def family(root: int) -> dict[int, Used]:
    """A process and its descendants, each with its own memory and CPU time; empty if it has ended."""
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    parents, uses = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        pid, ticks = int(stat.parent.name), sum(map(int, fields[11:15]))
        parents[pid], uses[pid] = int(fields[1]), Used(int(fields[21]) * page, ticks / tick)
    reached = {root} & uses.keys()
    while below := {pid for pid, parent in parents.items() if parent in reached} - reached:
        reached |= below
    return {pid: uses[pid] for pid in reached}


def keep(log: Path, figures: Figures, *, whole: bool) -> Figures:
    """Save the figures of a build next to its log, and return them; a complete build resets them."""
    path = log.with_suffix(".json")
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"whole": True}
    total = figures if earlier.pop("whole") else figures + Figures(**earlier)
    path.write_text(json.dumps({"whole": whole, **asdict(total)}) + "\n", encoding="utf-8")
    return total
