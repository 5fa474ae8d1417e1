"""Reads many damaged runs, and returns the failures: the seed or name of the run, and what happened."""

from __future__ import annotations

import random
import shutil
import signal
import traceback
from collections.abc import Iterable
from pathlib import Path

from damage.mutated_runs import as_of_another_compiler, copied, mutated
from damage.run_readers import SECONDS, Hangs, ask, bounded_memory, questions, read_all
from handmade.hostile_runs import hostile_runs, made
from handmade.small_runs import small_run

from tracing.errors import Problem


def reader_faults(folder: Path, seeds: Iterable[int]) -> list[str]:
    """What is no Problem when the readers read mutated runs; 20 ms a run."""
    source, faults = as_of_another_compiler(small_run(folder / "source")), []
    signal.signal(signal.SIGALRM, _hang)
    with bounded_memory():
        for seed in seeds:
            run = folder / "run"
            shutil.rmtree(run, ignore_errors=True)
            done = mutated(random.Random(seed), source, run)
            signal.alarm(SECONDS)
            try:
                read_all(run)
            except Problem:
                pass
            except BaseException:
                faults.append(f"seed {seed}, {done}: {traceback.format_exc(limit=-3)}")
            finally:
                signal.alarm(0)
    return faults


def command_faults(folder: Path, seeds: Iterable[int]) -> list[str]:
    """What no command may do with mutated runs; 100 ms a run."""
    source, faults = as_of_another_compiler(small_run(folder / "source")), []
    with bounded_memory():
        for seed in seeds:
            rng, runs = random.Random(seed), folder / "runs"
            shutil.rmtree(runs, ignore_errors=True)
            runs.mkdir()
            done = mutated(rng, source, runs / "run")
            for words in rng.sample(questions(runs / "run", source, 0, "k"), 2):
                faults += [f"seed {seed}, {done}: {words[0]}: {fault}" for fault in ask(*words).faults()]
    return faults


def hostile_faults(folder: Path, every: int) -> list[str]:
    """What no command may do with hand-made hostile runs, one out of `every`; 0.5 s a run.

    folder -- the working directory, so that what is written there by mistake is seen
    """
    source, faults = as_of_another_compiler(small_run(folder / "source")), []
    with bounded_memory():
        for number, one in list(enumerate(hostile_runs(source)))[::every]:
            runs = folder / "runs"
            shutil.rmtree(runs, ignore_errors=True)
            copied(source, runs / "good")
            run = made(one, source, runs / "bad")
            listed, *others = questions(run, runs / "good", 0, "k")
            answers = [ask(*words) for words in (listed, *random.Random(number).sample(others, 4))]
            faults += [f"{one.name}: {a.words[0]}: {fault}" for a in answers for fault in a.faults()]
            if "\ngood  failed" not in f"\n{answers[0].out}":
                faults.append(f"{one.name}: list lacks the good run")
            faults += [f"{one.name} wrote {path}" for path in folder.rglob("*owned*")]
    return faults


def _hang(*_: object) -> None:
    raise Hangs
