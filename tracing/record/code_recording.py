"""`with tracing.recording() as run:` records any code: in a script, a test or a notebook."""

from __future__ import annotations

import contextlib
import shutil
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch

from tracing import environment, store
from tracing.errors import Problem, message
from tracing.model import KEPT_IN_MEMORY, KEPT_ON_DISK, SCHEMA, Outcome, RunInfo, Selection, StepSelection
from tracing.numerics.undeclared_effects import UndeclaredEffects
from tracing.program.device import Device
from tracing.program.user_program import file_program
from tracing.record.autotuning.winners import Winners
from tracing.record.graphs.graph_passes import graph_passes_recorded
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import of_rank, selection_of
from tracing.record.launches.user_hash import HashFn, load_hash_fn
from tracing.record.outputs import Keep
from tracing.record.passes.recording import PassIRWhen
from tracing.record.session import Session
from tracing.record.step_selection import step_selection
from tracing.store.winners import read_winners

_TYPES = dict.fromkeys(("disk", "keep_memory", "keep_disk"), "give a number of bytes: 2 << 30 is 2GiB")
_TYPES["steps"] = 'give START:STOP: "10:20"'


@dataclass(frozen=True)
class RecordingOptions:
    """What `tracing.recording()` records: the options of `tracing run` under the same names."""

    name: str = ""  # of the run; empty: that of the file, or of the package of a `__main__.py`
    runs: str | Path = "runs"
    target: str = "sm_90"
    seed: int | None = None  # of torch's generators; None: they are not seeded
    digests: Literal["all", "declared", "none"] = "all"
    operators: Literal["writers", "digests", "none"] = "writers"
    kernel: Sequence[str] = ()
    launches: str = ":"
    phase: Sequence[Literal["forward", "backward"]] = ()
    rank: Sequence[int] = ()
    rank_aware: bool = False
    last: int | None = None
    every: int = 1
    steps: str = ":"
    until: Literal["", "nan", "inf", "any"] = ""
    disk: int | None = None  # bytes
    winners: str | Path | None = None
    keep_outputs: bool = False
    keep_inputs: bool = False
    keep_memory: int = KEPT_IN_MEMORY  # bytes
    keep_disk: int = KEPT_ON_DISK  # bytes
    keep_spill: Literal["oldest", "largest"] = "oldest"
    time: bool = False
    hash_fn: HashFn | str | None = None  # a function, or "FILE.py:NAME"
    passes: bool = True
    ir: PassIRWhen = "after"
    graph_passes: bool = False
    allow_out_of_bounds: bool = False
    no_virtual_gpu: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        """Raise Problem for a value that an option does not have."""
        for name, hint in get_type_hints(RecordingOptions).items():
            value, allowed = getattr(self, name), get_args(hint)
            given = f"tracing.recording({name}={value!r})"
            if get_origin(hint) is Literal and value not in allowed:
                needed = ", ".join(map(repr, allowed))
                raise Problem(f"{given}: {value!r} is not one of {needed}", "use one of these")
            if not _is_of(hint, value):
                needed = _named(hint)
                raise Problem(f"{given}: {value!r} is not of type {needed}", _TYPES.get(name, "give one"))
        for name in ("keep_memory", "keep_disk"):
            if getattr(self, name) < 0:
                raise Problem(f"tracing.recording({name}={getattr(self, name)}) is less than 0", _TYPES[name])
        for one in _sequence(self.phase):
            if one not in ("forward", "backward"):
                raise Problem(
                    f"tracing.recording(phase={one!r}): there is no such phase", "forward or backward"
                )

    @property
    def selection(self) -> Selection:
        """The launches that are recorded; raises Problem for a malformed range."""
        kernels, phases = _sequence(self.kernel), _sequence(self.phase)
        return selection_of(kernels, self.launches, phases, list(self.rank))

    @property
    def step_selection(self) -> StepSelection:
        """The steps that are recorded and kept; raises Problem as `tracing run` does."""
        shared = self.rank_aware and (self.keep_inputs or self.keep_outputs)
        return step_selection(
            self.last, self.every, self.steps, self.until, self.disk,
            digests=self.digests, shared_tensors=shared,
        )  # fmt: skip

    def recorder(self, writer: store.RunWriter) -> LaunchRecorder:
        """Records launches into a run."""
        keeps = self.keep_inputs or self.keep_outputs
        keep = Keep(self.keep_inputs, self.keep_memory, self.keep_disk, self.keep_spill)
        return LaunchRecorder(
            writer,
            self.digests,
            operators=self.operators,
            allow_out_of_bounds=self.allow_out_of_bounds,
            selection=of_rank(self.selection, environment.rank()),
            steps=self.step_selection,
            keep=keep if keeps else None,
            time=self.time,
            hash_fn=load_hash_fn(self.hash_fn) if isinstance(self.hash_fn, str) else self.hash_fn,
            strict=self.strict,
        )


def recording(**options: Any) -> contextlib.AbstractContextManager[store.Run]:
    """Record the block in this process; yields the run, which is readable at any time.

    options -- the fields of `RecordingOptions`: keep_inputs=True, operators="digests", runs="folder", ...

    A nested recording has a separate run; both are complete. Functions are recompiled inside of the block
    and afterwards. Raises TypeError for an unknown option, and Problem as `tracing run` does.
    """
    _require_known(options)
    return _Recording(RecordingOptions(**options), sys._getframe(1).f_code.co_filename)


class _Recording(contextlib.ContextDecorator, contextlib.AbstractContextManager[store.Run]):
    # a recording is entered once; a function that it decorates has one for each call

    def __init__(self, options: RecordingOptions, file: str) -> None:
        self._options, self._file = options, file
        self._recorded: contextlib.AbstractContextManager[store.Run] | None = None

    def _recreate_cm(self) -> _Recording:
        return _Recording(self._options, self._file)

    def __enter__(self) -> store.Run:
        if self._recorded is not None:
            problem = "this recording was entered before: call tracing.recording() for each block"
            raise Problem(problem, "`with tracing.recording() as run:`")
        self._recorded = _recorded(self._options, self._file)
        return self._recorded.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        assert self._recorded is not None
        return self._recorded.__exit__(*error)


def _require_known(options: Collection[str]) -> None:
    known = [one.name for one in fields(RecordingOptions)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            which = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(known)}"
            raise TypeError(f"tracing.recording() has no option {name}; {which}")


@contextlib.contextmanager
def _recorded(options: RecordingOptions, file: str) -> Iterator[store.Run]:
    device = Device(options.target, select=False, virtual=not options.no_virtual_gpu)
    steps = options.step_selection
    frozen = read_winners(Path(options.winners)).winners if options.winners else ()
    job = environment.job() if options.rank_aware else None
    path = Path(file).absolute() if not file.startswith("<") else Path.cwd()
    size = environment.world_size() if options.rank_aware else 1
    info = RunInfo(
        SCHEMA, options.name or file_program(path), str(path), tuple(sys.argv), options.seed, store.now(),
        device.environment(), options.digests, size, options.selection, options.operators,
        kind="code", folder=str(Path.cwd()), steps=steps, job_size=environment.world_size(),
    )  # fmt: skip
    writer = store.create(Path(options.runs), info, environment.rank(), job)
    effects = UndeclaredEffects() if options.keep_inputs else None  # for `tracing judge`
    session = Session(
        device,
        options.recorder(writer),
        passes=options.ir if options.passes else None,
        winners=Winners(writer, frozen),
        around=[
            *([graph_passes_recorded(writer)] if options.graph_passes else []),
            *([effects] if effects is not None else []),
        ],
    )
    try:
        session.start()
    except Problem:
        writer.close()
        shutil.rmtree(writer.path)
        raise
    try:
        if options.seed is not None:
            torch.manual_seed(options.seed)
        yield store.Run(writer.path)
    except BaseException as error:
        own = error.__traceback__.tb_next if error.__traceback__ is not None else None  # below this frame
        trace = "".join(traceback.format_exception(type(error), error, own))
        session.end(Outcome("failed", f"{type(error).__name__}: {message(error)}", trace, message(error)))
        raise
    undeclared = effects.texts if effects is not None else ()
    session.end(Outcome("ended", "the code ended; it is not compared with eager", undeclared=undeclared))


def _is_of(hint: Any, value: object) -> bool:
    # whether a value has the type of an option; True and False are no numbers
    origin, kinds = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_of(one, value) for one in kinds)
    if origin is Literal:
        return value in kinds
    if origin is Callable:
        return callable(value)
    if origin is Sequence:
        element = int if kinds[0] is int else str
        names = isinstance(value, str) and element is str
        return names or (isinstance(value, (list, tuple)) and all(_is_of(element, one) for one in value))
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _named(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_named, get_args(hint)))
    if get_origin(hint) is Sequence:
        return "list of " + ("int" if get_args(hint)[0] is int else "str")
    if get_origin(hint) is Callable:
        return "function"
    return "None" if hint is NoneType else str(hint.__name__)


def _sequence(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
