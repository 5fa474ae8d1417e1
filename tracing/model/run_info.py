"""The executed program, its settings and environment, and what was not covered."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from tracing.model.record import (
    Exact,
    Record,
    ScalarField,
    converted,
    from_json,
    set_fields,
    to_json,
    with_fields,
)
from tracing.model.steps import StepSelection

SCHEMA = 2
LAUNCHLESS = ("check", "guards")  # commands whose runs have no launches
VIRTUAL_GPU = "virtual GPU"  # the device that Triton's interpreter stands in for


class Winner(Exact, frozen=True, file="winners"):
    """The configuration that an autotuner chose for one kernel and one tuning key."""

    tuner: Literal["triton", "inductor"]  # @triton.autotune, or Inductor's CachingAutotuner
    kernel: str
    source: str  # digest of the kernel's Python source without its name: equal for every choice
    key: tuple[str, ...]  # "n=1024", "torch.float32"; of Inductor size hints, argument types and constants
    config: Mapping[str, ScalarField]  # meta-parameters, num_warps, num_stages, ...
    how: Literal["tuned", "cached", "frozen"] = "tuned"  # cached: tuned before, in this process or on disk
    candidates: tuple[Mapping[str, ScalarField], ...] = ()  # as far as they are known
    restored: tuple[str, ...] | None = None  # arguments that each trial resets or restores; None: not known

    def __post_init__(self) -> None:
        candidates = tuple(converted(from_json, one) for one in self.candidates)
        set_fields(self, config=converted(from_json, self.config), candidates=candidates)

    def stored(self) -> Winner:
        candidates = tuple(converted(to_json, one) for one in self.candidates)
        return with_fields(self, config=converted(to_json, self.config), candidates=candidates)


class Perturbed(Record, frozen=True, file="perturbed"):
    """A deliberate change of a condition that no correct program depends on."""

    what: str  # "memory", "winners", "hash seed", "programs", "delays", "late stream"
    how: str  # "0xff"; empty: it was not changed
    why_not: str = ""


class Seal(Record, frozen=True, file="seals"):
    """Proof that the owner of a key wrote the first `size` bytes of a file of this run."""

    file: str  # "kernels-host-0-17.ndjson"
    size: int  # bytes
    mac: str  # HMAC-SHA256


# begins what a NotCovered says of values that could not be followed
UNDECIDED = "whether a result depends on memory that nothing wrote"


class FileSizes(Record, frozen=True, file="sizes"):
    """The sizes of the files that a process had written into the run when it closed them: they only grow."""

    nbytes: Mapping[str, int]  # by file name


class NotCovered(Record, frozen=True, file="uncovered"):
    """Something that the recorder could not observe, and the setting that would record it."""

    what: str
    setting: str = ""  # empty: no setting shows it


UNMARKED = NotCovered(
    "steps: the program marked none, and counts as one step", "tracing.step() once in each iteration"
)


UNMATCHED = "a constraint that was given: "  # begins a NotCovered of one that checks nothing


class ReadVariable(Record, frozen=True, file="variables"):
    """An environment variable that the code of the case read, as it was when it was first read."""

    name: str
    value: str | None  # None: it was not set
    redacted: bool = False  # the value was not recorded, because the name says that it is secret


class Environment(Record, frozen=True):
    """Versions, device and settings under which a run was recorded."""

    python: str
    torch: str
    triton: str
    device: str
    target: str
    host: str
    platform: str
    knobs: Mapping[str, str]  # environment variables that torch and Triton read

    @property
    def virtual(self) -> bool:
        """True for the virtual GPU: Triton's interpreter executes the kernels."""
        return self.device == VIRTUAL_GPU

    @property
    def has_tf32(self) -> bool:
        """True for a GPU whose tensor cores may multiply float32 as TF32."""
        backend, _, capability = self.target.partition(":")
        return not self.virtual and backend == "cuda" and capability.isdigit() and int(capability) >= 80


class Selection(Record, frozen=True):
    """Launches by kernel, number, phase and rank; what is left empty excludes nothing."""

    kernels: tuple[str, ...] = ()  # globs of kernel names
    launches: tuple[int, int] | None = None  # START, STOP: in the order of a whole process, from 0
    phases: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def selects_all(self) -> bool:
        """True if it excludes nothing."""
        return self == Selection()

    def wants(self, index: int, kernel: str, phase: str, rank: int | None = None) -> bool:
        """True if the selection includes a launch; rank None: of any rank."""
        return (
            (self.launches is None or self.launches[0] <= index < self.launches[1])
            and self.wants_kernel(kernel, phase)
            and (not self.ranks or rank is None or rank in self.ranks)
        )

    def wants_kernel(self, kernel: str, phase: str) -> bool:
        """True if the selection includes launches of a kernel in a phase, by their number."""
        return (not self.phases or phase in self.phases) and (
            not self.kernels or any(fnmatchcase(kernel, glob) for glob in self.kernels)
        )

    def options(self) -> list[str]:
        """The options of `tracing run` that select these launches."""
        launches = ["{}:{}".format(*self.launches)] if self.launches is not None else []
        given = {
            "--kernel": self.kernels, "--launches": launches, "--phase": self.phases, "--rank": self.ranks,
        }  # fmt: skip
        return [word for name, values in given.items() for value in values for word in (name, str(value))]


class RunInfo(Record, frozen=True):
    """The content of run.json, written before the case starts."""

    schema: int
    case: str
    path: str
    argv: tuple[str, ...]
    seed: int | None  # of torch's generators; None: a program, which seeds them itself
    started: str  # ISO 8601, UTC
    environment: Environment
    digests: Literal["all", "declared", "none"] = "all"  # which tensors have digests
    world_size: int = 1  # ranks of the job that the run holds
    selection: Selection = Selection()  # which launches were recorded
    operators: Literal["digests", "writers", "none"] = "writers"  # which facts of operators were recorded
    kind: Literal["case", "program", "code"] = "case"  # code: what `tracing.recording()` surrounds
    program: tuple[str, ...] = ()  # the words after `python`: "train.py", "--epochs", "3"
    mode: str = ""  # mode of torch.compile, by --mode; empty: the mode of the case
    folder: str = ""  # the working directory of a program or of code
    steps: StepSelection = StepSelection()  # which steps were recorded and kept
    job_size: int = 1  # ranks of the job; without --rank-aware each of them has a run of its own

    @property
    def ranks_started(self) -> int:
        """The number of ranks that torchrun started; 1 outside of a job."""
        return max(self.world_size, self.job_size)

    @property
    def torchrun(self) -> tuple[str, ...]:
        """The words before `tracing` that start it once for each rank; empty outside of a job."""
        many = self.ranks_started > 1
        return ("torchrun", f"--nproc-per-node={self.ranks_started}", "-m") if many else ()

    @property
    def command(self) -> str:
        """The command of `tracing` that made the run: "run", "guards"; empty: another program did."""
        ours = self.argv and self.argv[0].rpartition("/")[2] in ("tracing", "__main__.py")
        return self.argv[1] if ours and len(self.argv) > 1 and self.kind != "code" else ""
