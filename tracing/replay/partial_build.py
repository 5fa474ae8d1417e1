"""What every build of a bisection has: steps that are left out, kernels that it writes and launches."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tracing.errors import message
from tracing.launch.hooks import NOTHING_AFTER
from tracing.launch.launch_site import LaunchSite
from tracing.program.compile_steps import CompileSteps
from tracing.program.device import Device
from tracing.program.user_code import is_users
from tracing.record.failures.diagnosis import sentence
from tracing.record.failures.error_chain import ErrorChain
from tracing.record.failures.inductor_failures import node_failure, operator_failure, raised_by_operator
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.store import RunWriter
from tracing.store.unused_run import unused_run
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.inductor.compile_errors import kernel_error
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.inductor.user_kernels import FunctionLines, user_kernel
from tracing.upstream.torch.autograd import NO_BACKWARD, backward_pass

_OF_OPERATOR = (
    "no step of the compiler is to blame: the operator or torch.library raises it; mend the operator as the "
    "error says"
)
UNDECLARED = (
    "no step of the compiler is to blame: torch.compile orders reads and allocates as operators declare; "
    "name a written argument in the operator's `mutates_args`; return a clone instead of an input or a view; "
    "let the fake implementation return the dtype, shape and strides that the operator returns"
)
_IN_PROCESS = {"compile_threads": 1}  # a fork has no workers, and a worker none of the steps


class PartialBuild:
    """A compile with some steps, and what is known of it."""

    def __init__(
        self,
        first: Mapping[str, int],
        without: Mapping[str, Sequence[str]],
        only: Mapping[str, Sequence[str]],
    ) -> None:
        """The arguments are those of CompileSteps."""
        self.steps = CompileSteps(first, without, only)
        self.own_kernels = OwnKernels()
        self._kernels: list[dict[str, Any]] = []
        self._started = time.perf_counter()

    @property
    def is_whole(self) -> bool:
        """True if no step is left out."""
        return not (self.steps.first or self.steps.without or self.steps.these)

    def restart(self) -> None:
        """Everything is compiled once more."""
        self._kernels.clear()
        self.steps.restart()

    def written(self, name: str, source: str, nodes: list[str]) -> None:
        """Inductor wrote a kernel."""
        self._kernels.append({"name": name, "source": source, "nodes": nodes})

    def described(self, symptom: Mapping[str, Any]) -> dict[str, Any]:
        """The build as JSON values.

        "steps" are those of each part, "kernels" what Inductor wrote, "own_kernels" the hand-written kernels
        that were launched.
        """
        asked = {part: [dataclasses.asdict(one) for one in some] for part, some in self.steps.asked.items()}
        seconds = time.perf_counter() - self._started
        answer = {"symptom": symptom, "steps": asked, "kernels": self._kernels, "seconds": seconds}
        return {**answer, "own_kernels": self.own_kernels.known()}


@contextmanager
def built_on(device: Device) -> Iterator[RunWriter]:
    """While active, torch.compile compiles in this process; yields the writer of an unused run.

    As under `tracing run`, a launch that leaves its tensors fails; a GPU does not notice it.
    """
    with ExitStack() as stack:
        stack.enter_context(device.active())
        writer = stack.enter_context(unused_run())
        if device.virtual:
            stack.enter_context(LaunchRecorder(writer, "none", operators="none", graphs=False))
        stack.enter_context(settings_changed(_IN_PROCESS))
        yield writer


class OwnKernels:
    """A listener of launches: the hand-written kernels, in order."""

    def __init__(self) -> None:
        self._lines: dict[str, FunctionLines | None] = {}  # by name; None: Inductor wrote the kernel
        self._backward: set[str] = set()  # names of kernels that a backward pass launches

    def before(self, site: LaunchSite, *_: object) -> object:
        """A kernel is launched."""
        if site.name not in self._lines:
            self._lines[site.name] = user_kernel(site.compiled().function)
        if backward_pass() != NO_BACKWARD:
            self._backward.add(site.name)
        return NOTHING_AFTER

    def after(self, token: object) -> None:
        """Is not called."""

    def known(self) -> list[dict[str, Any]]:
        """The kernels as JSON values: name, first line, whether a backward pass launches it."""
        return [
            {
                "name": name,
                "python": f"{Path(lines.file).name}:{lines.line}",
                "backward": name in self._backward,
            }
            for name, lines in self._lines.items()
            if lines is not None
        ]


def of_operator(error: BaseException, program: Path) -> dict[str, Any] | None:
    """The symptom of a build in which an operator of the program raises; None: none does.

    program -- the file of the program
    """
    chain = ErrorChain(error, program)
    if not raised_by_operator(chain):
        return None
    failure = operator_failure(chain) or node_failure(chain)
    text = sentence(failure) if failure else error_text(chain.errors[-1])
    return {"kind": "no answer", "text": text, "remedy": _OF_OPERATOR}


def raised(error: BaseException, *, by_user: bool = False) -> dict[str, Any]:
    """The symptom of a build that raises; the generated code must still be there.

    by_user -- name the last line of the user's own code, if there is one, and not the one that raises
    """
    error = kernel_error(error)  # of a hand-written kernel it is the same without Inductor
    frames = list(traceback.extract_tb(error.__traceback__))
    if by_user:
        frames = [one for one in frames if is_users(one.filename)] or frames
    text, kind = error_text(error), type(error).__name__
    return {"kind": "raises", "text": text, "error": kind, "where": _raised_at(frames)}


def error_text(error: BaseException) -> str:
    """The type of an error and the first line of its message."""
    lines = [line.strip() for line in message(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _raised_at(frames: Sequence[traceback.FrameSummary]) -> str:
    if not frames:
        return ""
    last = frames[-1]
    file = "the code that Inductor generated" if is_generated(last.filename) else last.filename
    return f"{file}, line {last.lineno}: {last.line}"
