"""The recorded facts: what a run on disk consists of, as frozen records.

Each `Record` is one line of an NDJSON file. What repeats from launch to launch (a compiled kernel,
its grid, its argument names and shapes) is stored once and referred to by `id`; `KernelLaunch` is
the joined form that analyses read. Nothing here knows torch: a run can be read anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

SCHEMA = 1

Blob: TypeAlias = str  # name of a file in blobs/: the digest of its content
Role: TypeAlias = Literal["in", "out", "in_out", "none", "unknown"]
Phase: TypeAlias = Literal["forward", "backward", "autotune"]
Scalar: TypeAlias = bool | int | float | str | None


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a run; records form no cycles, and hundreds of thousands would keep the collector busy."""


class Digest(Record, frozen=True):
    """The bits of a tensor's elements in logical order, and what people ask about their values."""

    bits: str  # 128 bits, 32 hexadecimal digits; position dependent, the same on every device
    tiles: str = ""  # 3 hexadecimal digits for each of up to 8 equal ranges of the elements
    nan: int = 0
    inf: int = 0
    negative_zero: int = 0
    l1: float | None = None  # sum of |x| over the finite elements, 6 digits; None: no magnitude


class TensorMeta(Record, frozen=True):
    """The layout of one tensor argument."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements
    dtype: str  # torch's name without "torch."
    device: str
    offset: int = 0  # elements from the start of the storage


class Argument(Record, frozen=True):
    """One argument of a launch, without what changes from launch to launch."""

    name: str
    declared: Role = "none"  # what the kernel's TTIR says it does with the memory behind it
    tensor: TensorMeta | None = None
    value: Scalar = None  # of an argument that is not a tensor


class Kernel(Record, frozen=True):
    """One compiled kernel."""

    id: int
    name: str
    hash: str  # Triton's `metadata.hash`: the key that joins launches, passes and other tools
    target: str  # "cuda:90"
    num_warps: int
    num_stages: int
    num_ctas: int
    constants: Mapping[str, str]  # tl.constexpr arguments and specialised values
    stages: Mapping[str, Blob]  # "ttir", "ttgir", "llir", "ptx", "cubin", ...
    source: Blob | None = None
    file: str | None = None  # where the kernel's Python source begins, "path:line"
    kind: Literal["triton", "interpreted", "cpp"] = "triton"
    module: Blob | None = None  # Python that defines KERNEL, with all that it uses of its module
    undefined: tuple[str, ...] = ()  # but for these names


class Signature(Record, frozen=True):
    """One way in which a kernel is launched: everything but the bits and the storages."""

    id: int
    kernel: int
    grid: tuple[int, int, int]
    phase: Phase
    device: str
    args: tuple[Argument, ...]


class LaunchLine(Record, frozen=True):
    """One launch as written when it starts."""

    index: int  # order of launch in this process, from 0
    signature: int
    stream: int
    storages: tuple[int, ...]  # one for each tensor argument; equal numbers share memory
    writers: Mapping[int, str] = {}


class DigestBatch(Record, frozen=True):
    """What launches found and left, column by column, written when it is known; see `digests.Columns`."""

    launches: Sequence[int]
    patterns: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]  # argument positions before, and after
    pattern: Sequence[int]  # of each launch
    bits: str
    tiles: str
    ranges: Sequence[int]
    l1: Sequence[float | None]
    special: Mapping[int, tuple[int, int, int]] = {}


class DigestLine(Record, frozen=True):
    """What one launch found and left; keys are argument positions."""

    launch: int
    before: Mapping[int, Digest]  # of every tensor argument that was digested
    after: Mapping[int, Digest]  # of every one that it may have written


class LaunchTime(Record, frozen=True):
    """How long one launch took."""

    launch: int
    wall_us: float  # on the host, until it returned; of a first launch with compiling and tuning
    device_us: float | None = None  # between events around it on its stream; None: not on a GPU, or captured


class UserHash(Record, frozen=True):
    """What a user's hash_fn gave for what one launch found and left; keys are argument positions."""

    launch: int
    before: Mapping[int, Scalar]
    after: Mapping[int, Scalar]


class Compilation(Record, frozen=True):
    """The compilation of one kernel, written before its first pass."""

    id: int  # order in this process, from 0
    kernel_name: str
    hash: str  # `metadata.hash`: that of `Kernel`
    target: str  # "cuda:90"
    options: Mapping[str, str]  # every option of the backend, each a Python literal
    source: Blob  # the IR that enters the first stage; compiling it again needs no Python source
    file: str | None = None  # where the kernel's Python source begins, "path:line"
    language: str = "triton"  # "gluon": it has no stage "ttir"
    first: str = "ttir"  # the stage that was run first; a later one where an IR file was compiled
    constants: Mapping[str, str] = {}  # tl.constexpr arguments and specialised values, as in `Kernel`
    block_locations: tuple[str, ...] = ()  # of the source's block arguments: its text lacks those of loops


class PassStart(Record, frozen=True):
    """One pass, written before it runs: if nothing follows, the process died inside it."""

    compilation: int
    index: int  # order in the compilation, from 0
    stage: str  # "ttir", "ttgir", "llir"
    name: str  # "tritongpu-coalesce"
    adder: str  # what Triton's compiler.py called, "passes.ttgpuir.add_coalesce"
    arguments: tuple[str, ...]  # what it was called with, behind the pass manager
    pipeline: str  # what `triton-opt --pass-pipeline` takes
    caller: str  # "path:line" in Triton's compiler.py


class PassEnd(Record, frozen=True):
    """One pass that ended."""

    compilation: int
    index: int
    wall_ms: float


class PassIR(Record, frozen=True):
    """The IR on one side of a pass, with locations; it changed nothing where both sides are one blob."""

    process: str  # that recorded the pass, "<host>-<rank>-<pid>": another one may have derived its IR
    compilation: int
    index: int
    side: Literal["before", "after"]
    blob: Blob


class Derivation(Record, frozen=True):
    """A compilation whose passes ran once more, so that their IR is known."""

    process: str
    compilation: int
    differs: str  # "": its artefacts came out as recorded; else what did not, or why it ended early


class StageArtefact(Record, frozen=True):
    """What one stage of a compilation gave: TTIR, TTGIR, LLIR, PTX, cubin, ..."""

    compilation: int
    stage: str  # the artefact's file name ending, "ttgir", "cubin"
    blob: Blob
    wall_ms: float


class LlvmPass(Record, frozen=True):
    """One pass of LLVM in one compilation."""

    index: int | None  # as opt-bisect-limit counts, from 1; None: LLVM never leaves it out
    stage: str  # "llir": the middle end; "ptx", "amdgcn": the code generator
    name: str  # "instcombine"
    unit: str  # what it worked on: "softmax", "[module]", "function (softmax)"
    before: Blob  # LLVM IR of the module, or machine code of the function
    after: Blob | None = None  # None: LLVM prints none behind this pass, or died inside it

    @property
    def changed(self) -> bool:
        """Whether the pass is known to have changed the IR."""
        return self.after not in (None, self.before)


class LlvmPasses(Record, frozen=True):
    """LLVM's half of one compilation, run once more and printed pass by pass."""

    hash: str  # of the compilation
    passes: tuple[LlvmPass, ...]
    failure: str = ""  # how it ended, where it did in the last of these passes
    differs: tuple[str, ...] = ()  # stages whose artefact did not come out as recorded


class PackedBlob(Record, frozen=True):
    """Where a blob lies that is compressed together with others like it: a part of one pack's content."""

    blob: Blob
    pack: str  # name of a file in blobs/
    start: int  # bytes, of the pack's uncompressed content
    size: int


class KeptTensor(Record, frozen=True):
    """The content of one tensor argument, before or after one launch."""

    launch: int
    position: int  # of the argument
    side: Literal["before", "after"]
    blob: Blob  # a safetensors file with one tensor called "tensor"


class Winner(Record, frozen=True):
    """The configuration that an autotuner took for one kernel and one tuning key."""

    tuner: Literal["triton", "inductor"]  # @triton.autotune, or Inductor's CachingAutotuner
    kernel: str
    source: str  # digest of the kernel's Python source without its name: equal whatever was chosen
    key: tuple[str, ...]  # "n=1024", "torch.float32"; of Inductor size hints, argument types and constants
    config: Mapping[str, Scalar]  # meta-parameters, num_warps, num_stages, ...
    how: Literal["tuned", "cached", "frozen"] = "tuned"  # cached: tuned before, in this process or on disk
    candidates: tuple[Mapping[str, Scalar], ...] = ()  # that it was chosen from, as far as they are known


class Landmark(Record, frozen=True):
    """A point at which the ranks of a job can be compared, written when it is reached."""

    index: int  # order in this process, from 0
    launch: int  # how many launches this process had made
    kind: Literal["collective", "update"]
    name: str  # the operator, "c10d::allreduce_"; "SGD.step"
    ranks: tuple[int, ...] = ()  # of a collective's process group
    inputs: tuple[TensorMeta, ...] = ()  # what a collective was given; the parameters before a first update
    results: tuple[TensorMeta, ...] = ()


class LandmarkDigests(Record, frozen=True):
    """The bits of one side of a landmark, in the order of its tensors, written when they are known."""

    landmark: int
    side: Literal["inputs", "results"]
    digests: tuple[Digest, ...]


class Perturbed(Record, frozen=True):
    """What a run changed that no program may rely on."""

    what: str  # "memory", "winners", "programs", "delays", "late stream"
    how: str  # "0xff"; empty: it was not changed
    why_not: str = ""


class NotCovered(Record, frozen=True):
    """Something that the recorder could not see, and the setting that would show it."""

    what: str
    setting: str


class Outcome(Record, frozen=True):
    """How the case ended; a run without one was interrupted."""

    status: Literal["passed", "differs", "failed", "compiled"]  # compiled: no kernel was executed
    detail: str  # the comparison with eager, or the error with its place
    traceback: str = ""


class Result(Record, frozen=True):
    """What the compiled case gave: one output, or the gradient of one leaf."""

    name: str  # "output 0", "grad of input 1"
    digest: Digest


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


class RunInfo(Record, frozen=True):
    """The content of run.json, written before the case starts."""

    schema: int
    case: str
    path: str
    argv: tuple[str, ...]
    seed: int
    started: str  # ISO 8601, UTC
    environment: Environment
    digests: Literal["all", "declared", "none"] = "all"  # of which tensors they were taken
    world_size: int = 1  # ranks of the job


class KernelArg(Record, frozen=True):
    """One argument of one launch, joined."""

    name: str
    declared: Role
    tensor: TensorMeta | None = None
    storage: int | None = None
    value: Scalar = None
    before: Digest | None = None
    after: Digest | None = None
    writer: str | None = None  # the operator outside of Triton that wrote it last, "aten::mm.out"

    @property
    def reads(self) -> bool:
        """Whether the kernel may read the memory behind this argument."""
        return self.tensor is not None and self.declared in ("in", "in_out", "unknown")

    @property
    def modified(self) -> bool:
        """Whether the bits were seen to change; a buffer rewritten with the same bits is not modified."""
        return self.before is not None and self.after is not None and self.before.bits != self.after.bits

    @property
    def writes(self) -> bool:
        """Whether the kernel may write the memory behind this argument."""
        return self.tensor is not None and self.declared in ("out", "in_out", "unknown")


class KernelLaunch(Record, frozen=True):
    """One launch, joined with its kernel, its signature and its digests."""

    index: int
    kernel: Kernel
    grid: tuple[int, int, int]
    stream: int
    device: str
    phase: Phase
    args: tuple[KernelArg, ...]
    finished: bool = True  # False: the process ended before the launch's digests were known, or it raised
    time: LaunchTime | None = None
    hashes: UserHash | None = None  # by a user's own hash_fn

    @property
    def kernel_name(self) -> str:
        return self.kernel.name


class PassRecord(Record, frozen=True):
    """One pass of one compilation, joined from its start and its end."""

    compilation: Compilation
    index: int
    stage: str
    name: str
    adder: str
    arguments: tuple[str, ...]
    pipeline: str
    caller: str
    before: Blob
    after: Blob | None = None  # None: the process died inside this pass
    wall_ms: float | None = None

    @property
    def changed(self) -> bool:
        """Whether the pass changed the IR, its locations included."""
        return self.after != self.before


@dataclass(frozen=True, slots=True)
class Workload:
    """What a case runs: `fn(*args, **kwargs)`, and its gradients if `backward`."""

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """How a launch is made in the place of a program's own."""

    module: str  # Python text that defines KERNEL, CONSTANTS and OPTIONS
    grid: tuple[int, int, int]
    eager: bool = False  # executed by Triton's interpreter, on the host


class Rerun(Record, frozen=True):
    """What a case gave, run again with launches replaced."""

    results: Mapping[str, str]  # the bits of each output and gradient
    outcome: Outcome
    refused: str = ""  # the kernel that could not be replaced; why is the outcome's detail


@dataclass(frozen=True, slots=True)
class Case:
    """A file with `build(device) -> Workload`."""

    name: str
    path: Path
    description: str
    build: Callable[[str], Workload]
