"""One evaluation of a bisection: a program is run in this process, and compiled in part.

A program is right if it ends with exit status 0, or as a command judges what it prints.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from tracing.launch.hooks import installed
from tracing.numerics.undeclared_effects import UndeclaredEffects
from tracing.program.device import Device
from tracing.program.partial_compile import partly_compiled
from tracing.program.seeding import seed_generators
from tracing.program.user_code import imported_files
from tracing.program.user_program import UserProgram
from tracing.record.program_outcome import exit_status
from tracing.replay.partial_build import UNDECLARED, PartialBuild, built_on, of_operator, raised
from tracing.replay.partial_case import UNCOMPILED
from tracing.store import blob_name
from tracing.upstream.patch import patched
from tracing.upstream.torch.dynamo import compiled_calls_reported, nothing_compiled

EAGER_PROGRAM = "eager program"  # nothing compiles, and `torch.compiler.is_compiling()` is false
OBSERVED_PROGRAM = "observed program"  # the same, and what operators do against their schemas is noted


class _Exited(BaseException):
    # os._exit of the program

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class PartialProgram:
    """A program that runs once in each process."""

    def __init__(self, program: UserProgram, device: Device, seed: int | None) -> None:
        """seed -- of its generators of random numbers; None: the program seeds them."""
        self._program, self._device, self._seed = program, device, seed

    def evaluate(
        self,
        stage: str,
        first: Mapping[str, int],
        without: Mapping[str, Sequence[str]],
        only: Mapping[str, Sequence[str]],
        printed: str,
    ) -> dict[str, Any]:
        """Run the program, compiled up to a stage with some steps; returns the result as JSON values.

        stage   -- as for partly_compiled; UNCOMPILED: nothing compiles, and torch.compiler.is_compiling() is
                   true inside of what is wrapped by torch.compile; EAGER_PROGRAM: nothing compiles;
                   OBSERVED_PROGRAM: the symptom is what operators of the program do against their schemas
        printed -- folder for `stdout` and `stderr` of the program; "": they are not kept

        "symptom" tells how it ended, "files" are the digests of the user's files that were imported; further
        keys: PartialBuild.described.
        """
        build = PartialBuild(first, without, only)
        effects = UndeclaredEffects() if stage == OBSERVED_PROGRAM else None
        with (
            built_on(self._device),
            self._around(stage, build),
            _streams_into(printed),
            effects or nullcontext(),
        ):
            symptom = self._ended()
        if effects is not None:
            text = "; ".join(effects.texts)
            symptom = {"kind": "no answer" if text else "right", "text": text, "remedy": UNDECLARED}
        digests = {str(path): blob_name(path.read_bytes()) for path in imported_files() if path.is_file()}
        return {**build.described(symptom), "files": digests}

    @contextmanager
    def _around(self, stage: str, build: PartialBuild) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(installed(build.own_kernels))
            if stage in (EAGER_PROGRAM, OBSERVED_PROGRAM):
                stack.enter_context(nothing_compiled())
            elif stage == UNCOMPILED:
                stack.enter_context(compiled_calls_reported())
            else:
                stack.enter_context(partly_compiled(stage, build.steps, build.written))
            yield

    def _ended(self) -> dict[str, Any]:
        if self._seed is not None:
            seed_generators(self._seed)
        try:
            with patched(os, "_exit", _exit_raising):
                self._program.execute()
                for thread in threading.enumerate():
                    if thread is not threading.current_thread() and not thread.daemon:
                        thread.join()
        except SystemExit as error:
            return _exited(exit_status(error), error.code)
        except _Exited as error:
            return _exited(error.status, error.status)
        except BaseException as error:
            return of_operator(error, self._program.path) or raised(error, by_user=True)
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        return _exited(0, 0)


def _exited(status: int, code: object) -> dict[str, Any]:
    message = f": {code.splitlines()[0]}" if isinstance(code, str) and code.strip() else ""
    text = f"exit status {status}"
    return {
        "kind": "fails" if status else "right",
        "text": f"{text}{message}",
        "error": text if status else "",
    }


def _exit_raising(original: Any) -> Any:
    owner, thread = os.getpid(), threading.current_thread()

    def exit_now(status: int) -> NoReturn:
        if os.getpid() == owner and threading.current_thread() is thread:
            raise _Exited(status)
        original(status)
        raise AssertionError

    return exit_now


@contextmanager
def _streams_into(folder: str) -> Iterator[None]:
    # this process ends after the program, so its streams stay where they are
    if folder:
        for number, name in ((1, "stdout"), (2, "stderr")):
            with (Path(folder) / name).open("wb") as file:
                os.dup2(file.fileno(), number)
    yield
