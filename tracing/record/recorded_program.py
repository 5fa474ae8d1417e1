"""Runs a program in this process while it is recorded, as `python` would run it."""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from tracing import environment
from tracing.errors import message, page
from tracing.model import Failure, FrameCompile, KeptTensor, Kernel
from tracing.numerics.undeclared_effects import UndeclaredEffects
from tracing.program.named_variables import variables_of_program
from tracing.program.seeding import seed_generators
from tracing.program.user_program import (
    UserProgram,
    shown_as_by_python,
    threads_shown_as_by_python,
)
from tracing.record.crash_report import crashes_noted
from tracing.record.program_outcome import ended_by, ended_with
from tracing.record.session import Session
from tracing.store import Run
from tracing.store.program_words import repeated_words
from tracing.store.runs import folder_of_runs
from tracing.upstream.patch import patched
from tracing.virtual_gpu.limits import remedy_of


class RecordedProgram:
    """A program, and the session that records it."""

    def __init__(
        self,
        program: UserProgram,
        session: Session,
        seed: int | None,
        findings: Callable[[Run], Iterable[str]] = lambda run: (),
        effects: UndeclaredEffects | None = None,
        *,
        judged: bool = False,
    ) -> None:
        """seed -- of its generators of random numbers, when the program starts; None: not seeded

        findings -- what to print of the finished run, a line each
        effects  -- notes what operators do against their schemas, in the session; None: that is not recorded
        judged   -- the run is judged when this process has ended
        """
        self._program, self._session, self._seed, self._findings = program, session, seed, findings
        self._effects, self._judged = effects, judged
        self._pid = os.getpid()
        self._variables: dict[str, str] = {}  # of the environment, when the program starts
        self.outcome = ended_with("exit status 0")
        self._remedy = ""  # of the error that ended the program, if the machine lacks what it needs
        self._exit = ExitStack()

    def run(self) -> None:
        """Run it to its end; raises what it raises. The recording ends after its last exit handler."""
        self._start()
        try:
            self._program.execute()
        except BaseException as error:
            shown_as_by_python(error)
            self._remedy = remedy_of(error)
            self.outcome = ended_by(error, self._program, self._session.writer)
            raise

    def run_to_end(self) -> None:
        """Run it in a process that continues afterwards; raises only KeyboardInterrupt.

        Its threads are awaited; its exit handlers do not run.
        """
        self._start(quiet=True)
        try:
            self._program.execute()
        except BaseException as error:
            self.outcome = ended_by(error, self._program, self._session.writer)
            if isinstance(error, KeyboardInterrupt):
                raise
        finally:
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
            self._end(quiet=True)

    def _start(self, *, quiet: bool = False) -> None:
        if self._seed is not None:
            seed_generators(self._seed)
        if not quiet:
            atexit.register(self._end)  # handlers run in reverse: those of the program, then this one
        threads_shown_as_by_python()
        self._variables = dict(environment.variables())
        self._exit.enter_context(patched(os, "_exit", self._around_exit))
        for name in ("execv", "execve"):  # the others of os call these
            self._exit.enter_context(patched(os, name, self._around_exec))
        self._exit.enter_context(crashes_noted(self._session.writer))
        with environment.gpu_unopened():
            self._session.start()
        if not quiet:
            _say(f"recording into {self._session.writer.path}")

    def _around_exit(self, original: Any) -> Any:
        def exit_now(status: int) -> None:
            if os.getpid() == self._pid:
                self._ends_now(f"os._exit({status})")
            original(status)

        return exit_now

    def _around_exec(self, original: Any) -> Any:
        def execute(path: Any, *args: Any) -> None:
            if os.getpid() == self._pid and not isinstance(path, int) and _executable(path):
                replaced = f"the program replaced itself by {os.fsdecode(path)}, which is not recorded"
                self._ends_now(replaced)
                _say(f"{replaced}: {shlex.join(['tracing', 'show', str(self._session.writer.path)])}")
            original(path, *args)

        return execute

    def _ends_now(self, how: str) -> None:
        # no exit handler runs
        with suppress(Exception):
            self._session.flush()
        self._session.writer.last(ended_with(how))

    def _end(self, *, quiet: bool = False) -> None:
        if os.getpid() != self._pid:
            return
        self._exit.close()
        with suppress(Exception):  # of modules of the program, whose `__file__` may be anything
            self._session.writer.extend(variables_of_program(self._variables))
        undeclared = self._effects.texts if self._effects is not None else ()
        self._session.end(msgspec.structs.replace(self.outcome, undeclared=undeclared))
        seen = self._session.launches
        if not quiet:
            self._report(Run(self._session.writer.path), seen)
        if self.outcome.status == "interrupted" and not quiet:
            _end_by_interrupt()

    def _report(self, run: Run, seen: int) -> None:
        failures = list(run.records(Failure))
        for one in failures:
            if problem := one.problem(str(self._program.path)):
                _print(problem)  # for editors, which open the line
        for effect in self._effects.texts if self._effects is not None else ():
            _say(effect)
        try:
            for line in self._findings(run):
                _say(line)
        except Exception as error:  # the program has ended already, and its exit status stays
            _say(f"the findings of the run cannot be read: {message(error)}")
        launches = f"{seen} launch{'' if seen == 1 else 'es'} seen{self._session.kept}"
        _say(f"{launches}: {shlex.join(['tracing', 'show', str(run.path)])}")
        if any(one.kind == "kernel" for one in failures):
            return  # a kernel of the program, and what it does wrong, are named
        if self._remedy:
            _say(f"what helps: {self._remedy}")
            return  # no kernel is to blame
        if not self._session.device.execute:
            _say("--compile-only executed no launch: whether one is right is not known")
            return
        if seen and run.info.world_size == 1 and not self._judged:
            _say(self._judging(run))
        compiled = any(one.traced for one in run.records(FrameCompile))
        if self.outcome.fails and compiled and not self._judged:  # the judgement ends with it, too
            alike = ", if one rank fails alike" if run.info.ranks_started > 1 else ""
            _say(f"whether torch.compile is to blame{alike}: {self._bisection(run)}")

    def _judging(self, run: Run) -> str:
        # the interpreter, which judges a kernel without a graph, has executed it already
        graphs = any(one.operators for one in run.records(FrameCompile))
        interpreted = all(one.kind == "interpreted" for one in run.records(Kernel))
        if not graphs and (run.info.environment.virtual or interpreted):
            how = page("docs/case.md#check-a-hand-written-kernel")
            return f"nothing checks what hand-written kernels compute; how to check them: {how}"
        judge = shlex.join(["tracing", "judge", str(run.path)])
        once = self.outcome.status == "failed" or run.info.ranks_started > 1  # it cannot be recorded anew
        if once and not any(run.records(KeptTensor)):
            words = ["tracing", "run", "--judge", *self._options(run), *self._words(run)]
            judge = shlex.join([*run.info.torchrun, *words])
        what = (
            "a kernel, or a step of torch.compile between Dynamo and the kernels," if graphs else "a kernel"
        )
        return f"whether {what} is wrong: {judge}"

    def _options(self, run: Run) -> list[str]:
        seed = [] if self._seed is None else ["--seed", str(self._seed)]
        return [*seed, *self._session.device.options, *_below(run)]

    def _bisection(self, run: Run) -> str:
        one_rank = ["torchrun", "--nproc-per-node=1", "-m"] if run.info.ranks_started > 1 else []
        return shlex.join([*one_rank, "tracing", "bisect", *self._options(run), *self._words(run)])

    def _words(self, run: Run) -> list[str]:
        return repeated_words(self._program.words, run.info.folder)


def _executable(path: str | bytes | os.PathLike[str]) -> bool:
    # otherwise the program goes on: os.execvp tries the folders of PATH
    return Path(os.fsdecode(path)).is_file() and os.access(path, os.X_OK)


def _below(run: Run) -> list[str]:
    # the option for the folder of the runs, unless it is the default folder
    folder = folder_of_runs(run.path)
    return [] if folder.absolute() == Path(run.info.folder, "runs") else ["--runs", str(folder)]


def _end_by_interrupt() -> None:
    # Python ends the process by SIGINT, unless code has executed from a string since the interrupt: what the
    # recording imports at its end has some. Source: run_eval_code_obj in CPython's Python/pythonrun.c
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def _say(line: str) -> None:
    _print(f"tracing: {line}")


def _print(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
