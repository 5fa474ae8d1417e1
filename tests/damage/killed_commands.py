"""Commands that are killed at random moments, with the properties that must hold afterwards."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path

from commands import DATA
from damage.kills import Command, Commands, files, lost, opened, passes, without_ir

from tracing import store

CASE = str(DATA.parent.parent / "cases" / "gated_mlp.py")
KERNEL = "triton_poi_fused_mul_sigmoid_1#1"


class KilledRuns:
    """`tracing run`, killed."""

    def __init__(self, commands: Commands, folder: Path, chance: random.Random) -> None:
        self.commands, self.folder, self.chance = commands, folder, chance
        self.tally: Counter[str] = Counter()
        self._count = 0
        started = time.monotonic()
        whole = commands.run("run", CASE, "--runs", str(folder / "whole"))
        self.seconds = time.monotonic() - started
        assert whole.status in (0, 1), whole.messages()
        (self.whole,) = opened(folder / "whole")

    def next(self) -> Path:
        self._count += 1
        return self.folder / f"run{self._count}"

    def once(self) -> None:
        runs = self.next()
        self.killed(self.commands.start("run", CASE, "--runs", str(runs)), runs, self.seconds, "run")
        for run in opened(runs):
            self.tally["runs that open"] += 1
            if self.chance.random() < 0.25:
                before = files(runs)
                done = self.commands.run("passes", str(run.path))
                assert done.status in (0, 2), done.messages()  # 2: no compilation was recorded yet
                assert lost(before) == []
                opened(runs)
        shutil.rmtree(runs, ignore_errors=True)

    def killed(self, command: Command, runs: Path, seconds: float, name: str) -> None:
        """Kill a command within `seconds`, and check that nothing is lost and no process is left."""
        time.sleep(self.chance.uniform(0, seconds))
        before = files(runs)
        how = command.kill(self.chance)
        left = command.left()
        assert left == [], f"{name}: {how} was killed; {left} live on"
        assert lost(before) == [], f"{name}: {how} was killed"
        self.tally[f"{name}: killed {how}"] += 1


class KilledPasses:
    """`tracing passes` of a run without IR between passes, killed."""

    def __init__(self, runs: KilledRuns) -> None:
        self.runs = runs
        self.expected = passes(runs.whole)
        self.copy = runs.folder / "without"
        without_ir(runs.whole.path, self.copy)
        assert len(store.Run(self.copy).underived()) > 1

    def once(self) -> None:
        runs = self.runs.next()
        run = runs / "copy"
        shutil.copytree(self.copy, run)
        command = self.runs.commands.start("passes", str(run))
        self.runs.killed(command, runs, self.runs.seconds / 2, "passes")
        opened(runs)
        before = files(runs)
        done = self.runs.commands.run("passes", str(run))
        assert done.status == 0, done.messages()
        assert lost(before) == []
        assert passes(store.Run(run)) == self.expected
        self.runs.tally["passes complete afterwards"] += 1
        shutil.rmtree(runs)


class KilledBisect:
    """`tracing bisect` of a kernel's passes, killed."""

    def __init__(self, runs: KilledRuns) -> None:
        self.runs = runs
        self.words = ("--kernel", KERNEL, "--", "grep", "-q", "ex2", "{ptx}")
        started = time.monotonic()
        run = self._copied()
        self.whole = self._ended(run)
        self.seconds = time.monotonic() - started

    def _copied(self) -> Path:
        run = self.runs.next() / "copy"
        shutil.copytree(self.runs.whole.path, run)
        return run

    def _ended(self, run: Path) -> tuple[int | None, list[str]]:
        done = self.runs.commands.run("bisect", str(run), *self.words)
        lines = done.output.read_text().replace(str(run), "RUN").splitlines()
        return done.status, [line for line in lines if " s" not in line]

    def once(self) -> None:
        run = self._copied()
        command = self.runs.commands.start("bisect", str(run), *self.words)
        self.runs.killed(command, run.parent, self.seconds, "bisect")
        opened(run.parent)
        if self.runs.chance.random() < 0.25:
            assert self._ended(run)[0] == self.whole[0]
            self.runs.tally["bisect answers the same afterwards"] += 1
        shutil.rmtree(run.parent)
