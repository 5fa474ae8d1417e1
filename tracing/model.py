"""The records that a run on disk consists of.

Each `Record` is one line of an NDJSON file. What repeats from launch to launch (a compiled kernel,
its grid, its argument names and shapes) is stored once and referred to by `id`; `KernelLaunch` is
the joined form that analyses read. Nothing here knows torch: a run can be read anywhere.

Lines are JSON. It keeps true, 1, 1.0, -0.0 and "text" apart, but has neither inf nor nan, for which msgspec
would write null: a scalar that is one of them is {"float": "inf"}, {"float": "-inf"} or {"float": "nan"} on
disk, and a float in memory. Records with scalars are equal if the types and bits of these are.
"""

from __future__ import annotations

import math
import os.path
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

SCHEMA = 2

Blob: TypeAlias = str  # name of a file in blobs/: the digest of its content
Role: TypeAlias = Literal["in", "out", "in_out", "none", "unknown"]
Phase: TypeAlias = Literal["forward", "backward"]
Scalar: TypeAlias = bool | int | float | str | None


def may_read(role: Role) -> bool:
    """True if a kernel may read the memory of an argument with this role."""
    return role in ("in", "in_out", "unknown")


def may_write(role: Role) -> bool:
    """True if a kernel may write the memory of an argument with this role."""
    return role in ("out", "in_out", "unknown")


class NonFinite(msgspec.Struct, frozen=True):
    """A float that JSON lacks, as it lies on disk."""

    float: str  # "inf", "-inf", "nan"


if TYPE_CHECKING:
    ScalarField: TypeAlias = Scalar
else:  # what msgspec may read; a record makes a float of it
    ScalarField = Scalar | NonFinite


def to_json(value: Scalar) -> Scalar | NonFinite:
    """A scalar as JSON can hold it."""
    return NonFinite(repr(value)) if isinstance(value, float) and not math.isfinite(value) else value


def from_json(value: Scalar | NonFinite) -> Scalar:
    """A scalar that was read; raises ValueError for a float that is none."""
    return float(value.float) if isinstance(value, NonFinite) else value


def exact(value: Scalar | Mapping[str, Scalar]) -> object:
    """What is equal of two scalars, or of two configurations, if their types and bits are.

    To Python's own == nan differs from itself, -0.0 is 0.0, and True is 1.
    """
    if isinstance(value, Mapping):
        return {name: exact(one) for name, one in value.items()}
    return type(value).__name__, repr(value)


class RecordFile(NamedTuple):
    """The files that hold one kind of record, one file a process."""

    name: str  # "kernels": kernels-<host>-<rank>-<pid>.ndjson
    compressed: bool  # .ndjson.zst: the records come one a launch or one a pass


_FILES: dict[type, RecordFile] = {}


class _RecordType(msgspec.StructMeta):
    # takes `file` and `compressed` from the line that declares a record; msgspec calls no __init_subclass__
    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        file: str = "",
        compressed: bool = False,
        **options: Any,
    ) -> _RecordType:
        record = super().__new__(cls, name, bases, namespace, **options)
        if file:
            assert file not in (one.name for one in _FILES.values()), f"two records are in {file}"
            _FILES[record] = RecordFile(file, compressed)
        return record


class Record(msgspec.Struct, metaclass=_RecordType, frozen=True, omit_defaults=True, gc=False):
    """An immutable fact of a run.

    A record that has lines of its own declares its file, `class Kernel(Record, frozen=True, file="kernels")`,
    and `compressed=True` if a run has a line for each launch or pass. Other records are parts of such lines.
    """

    # no garbage collection: records form no cycles, and hundreds of thousands would keep the collector busy

    def stored(self) -> Record:
        """This record as JSON can hold it."""
        return self


def file_of(kind: type[Record]) -> RecordFile:
    """The files that hold records of one kind; raises KeyError for a record that declares none."""
    return _FILES[kind]


R = TypeVar("R", bound=Record)


class Exact(Record, frozen=True):
    """A record with scalars: nan equals itself, and neither is -0.0 equal to 0.0 nor True to 1."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _bits(self) == _bits(other)

    def __hash__(self) -> int:
        return hash(_bits(self))


def _bits(record: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(record.stored(), str_keys=True), order="deterministic")


def _all(convert: Callable[[Any], Any], scalars: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: convert(value) for name, value in scalars.items()}


def _set(record: Record, **fields: object) -> None:
    for name, value in fields.items():
        msgspec.structs.force_setattr(record, name, value)


def _copy(record: R, **fields: object) -> R:
    # unlike msgspec's replace, it leaves the fields as they are given: `__post_init__` does not see them
    copied = msgspec.structs.replace(record)
    _set(copied, **fields)
    return copied


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


class Argument(Exact, frozen=True):
    """One argument of a launch, without what changes from launch to launch."""

    name: str
    declared: Role = "none"  # what the kernel does, by its TTIR, with the memory that the argument points to
    tensor: TensorMeta | None = None
    value: ScalarField = None  # of an argument that is not a tensor
    addresses: bool = False  # its value, or its content, is used as addresses: no two runs have the same

    @property
    def reads(self) -> bool:
        """True if the kernel may read the memory that this argument points to."""
        return self.tensor is not None and may_read(self.declared)

    @property
    def writes(self) -> bool:
        """True if the kernel may write the memory that this argument points to."""
        return self.tensor is not None and may_write(self.declared)

    def __post_init__(self) -> None:
        _set(self, value=from_json(self.value))

    def stored(self) -> Argument:
        return _copy(self, value=to_json(self.value))


class Kernel(Record, frozen=True, file="kernels"):
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


class Signature(Record, frozen=True, file="signatures"):
    """What launches of a kernel have in common: everything except the bits and the storages."""

    id: int
    kernel: int
    grid: tuple[int, int, int]
    phase: Phase
    device: str
    args: tuple[Argument, ...]

    def stored(self) -> Signature:
        return _copy(self, args=tuple(arg.stored() for arg in self.args))


class LaunchLine(Record, frozen=True, file="launches", compressed=True):
    """One launch as written when it starts."""

    index: int  # order of launch in this process, from 0
    signature: int
    stream: int
    storages: tuple[int, ...]  # `Storage.id` of each tensor argument
    writers: Mapping[int, str] = {}
    site: int = -1  # `CallSite.id`; -1: unknown
    thread: int = 0  # threads are numbered in the order of their first launch or operator


class Storage(Record, frozen=True, file="storages"):
    """A block of memory that a launch or an operator touched.

    An allocator reuses freed memory: two blocks of one process may overlap, one after the other.
    """

    id: int
    address: int
    nbytes: int


class CallSite(Record, frozen=True, file="sites"):
    """A line of the program's own Python code, outside of torch, Triton and generated code."""

    id: int
    file: str
    line: int
    function: str
    instruction: int = 0  # distinguishes two calls on one line

    def __str__(self) -> str:
        """`cases/silu.py:9 in forward`, relative to the working directory where the file is inside of it."""
        near = os.path.relpath(self.file)
        return f"{self.file if near.startswith(os.pardir) else near}:{self.line} in {self.function}"


class OperatorSignature(Record, frozen=True, file="operatorsignatures"):
    """What calls of an operator outside of Triton have in common: all except the bits and the storages."""

    id: int
    name: str  # "aten::add_.Tensor"
    arguments: str  # those that are no tensors, as Python writes them: "alpha=2"
    reads: tuple[TensorMeta, ...]
    writes: tuple[TensorMeta, ...]  # outputs and mutated arguments
    allocates: bool = False  # what it "writes" is uninitialised, but for what it reads: `empty`, `resize_`
    random: bool = False  # it draws from a generator: equal inputs need not give equal outputs


class OperatorCall(Record, frozen=True, file="operators", compressed=True):
    """One call of an operator outside of Triton that wrote or allocated memory."""

    index: int  # order in this process, from 0
    launch: int  # how many launches this process had made when it had run
    signature: int
    storages: tuple[int, ...]  # `Storage.id` of what it read, then of what it wrote
    site: int = -1
    thread: int = 0


class OperatorDigests(Record, frozen=True, file="operatordigests", compressed=True):
    """The bits that one operator read and wrote, in its signature's order; of `--operators digests`.

    `Digest.bits` is empty where none could be taken.
    """

    operator: int
    before: tuple[Digest, ...]
    after: tuple[Digest, ...]


class Access(Record, frozen=True, file="accesses", compressed=True):
    """What one launch touched, exactly: the interpreter saw it. Keys are argument positions.

    An argument that was touched everywhere has its own digest, as in `Digest.bits`. Where it was not, the
    digest is of its bytes in logical order, the others as zeros, followed by a bit for each byte, set where
    it was touched. Memory that the kernel reached through loaded pointers is not here.

    Ranges are bytes, START, STOP, START, STOP, ..., from the argument's first element; an argument that was
    touched everywhere, or in too many ranges to list, has none.
    """

    launch: int
    read: Mapping[int, str] = {}  # digest of the bytes that it read and had not written, all others as zeros
    written: Mapping[int, str] = {}  # digest of the bytes that it wrote, as it left them, all others as zeros
    read_ranges: Mapping[int, tuple[int, ...]] = {}
    written_ranges: Mapping[int, tuple[int, ...]] = {}
    partly: tuple[int, ...] = ()  # arguments that were written, and not everywhere
    uninitialised: Mapping[int, tuple[int, int]] = {}  # read though nobody wrote it: first element, how many


class OutOfBounds(Record, frozen=True, file="outofbounds"):
    """Accesses of one launch outside of its argument, by one line of the kernel.

    Written before the first of them happens, and once more when the kernel has run if there were more: the
    last line for a launch, argument, kind, line of the kernel and `inside` counts.
    """

    launch: int
    argument: str  # the nearest one
    access: Literal["load", "store"]  # an atomic is one of each
    element: int  # the first such access, in elements from the argument's first one
    program: tuple[int, int, int]  # that made it
    start: int  # the lowest address
    stop: int  # after the highest
    count: int  # addresses, over all programs
    inside: bool  # within the storage of the argument, as where a slice is overrun
    where: str  # "file.py:12" of the kernel; empty if unknown


class Reread(Record, frozen=True, file="rereads", compressed=True):
    """What a writer's view held just before a launch that reads the same memory through another view."""

    launch: int  # that reads
    position: int
    writer: int  # launch that wrote it last
    argument: int  # position of the writer's argument
    bits: str


class Values(Record, frozen=True, file="values", compressed=True):
    """The elements of one small tensor argument in logical order, before or after one launch."""

    launch: int
    position: int
    side: Literal["before", "after"]
    values: tuple[bool | int | float | str, ...]  # "nan", "inf", "-inf": JSON has no number for these


class DigestBatch(Record, frozen=True, file="digests", compressed=True):
    """What launches found and left, column by column, written when it is known; see `Columns`."""

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


class LaunchTime(Record, frozen=True, file="times", compressed=True):
    """How long one launch took."""

    launch: int
    wall_us: float  # on the host, until it returned; of a first launch with compiling and tuning
    device_us: float | None = None  # between events around it on its stream; None: not on a GPU, or captured


class UserHash(Exact, frozen=True, file="hashes", compressed=True):
    """What a user's hash_fn gave for what one launch found and left; keys are argument positions."""

    launch: int
    before: Mapping[int, ScalarField]
    after: Mapping[int, ScalarField]

    def __post_init__(self) -> None:
        _set(self, before=_all(from_json, self.before), after=_all(from_json, self.after))

    def stored(self) -> UserHash:
        return _copy(self, before=_all(to_json, self.before), after=_all(to_json, self.after))


class Compilation(Record, frozen=True, file="compilations"):
    """The compilation of one kernel, written before its first pass."""

    id: int  # order in this process, from 0
    kernel_name: str
    hash: str  # `metadata.hash`: that of `Kernel`
    target: str  # "cuda:90"
    options: Mapping[str, str]  # every option of the backend, each a Python literal
    source: Blob  # the IR that enters the first stage; recompiling it needs no Python source
    file: str | None = None  # where the kernel's Python source begins, "path:line"
    language: str = "triton"  # "gluon": it has no stage "ttir"
    first: str = "ttir"  # the stage that was run first; a later one where an IR file was compiled
    constants: Mapping[str, str] = {}  # tl.constexpr arguments and specialised values, as in `Kernel`
    block_locations: tuple[str, ...] = ()  # of the source's block arguments: its text lacks those of loops


class PassStart(Record, frozen=True, file="passes", compressed=True):
    """One pass, written before it runs: if nothing follows, the process died inside it."""

    compilation: int
    index: int  # order in the compilation, from 0
    stage: str  # "ttir", "ttgir", "llir"
    name: str  # "tritongpu-coalesce"
    adder: str  # what Triton's compiler.py called, "passes.ttgpuir.add_coalesce"
    arguments: tuple[str, ...]  # the arguments of that call after the pass manager
    pipeline: str  # what `triton-opt --pass-pipeline` takes
    caller: str  # "path:line" in Triton's compiler.py


class PassEnd(Record, frozen=True, file="passends", compressed=True):
    """One pass that ended."""

    compilation: int
    index: int
    wall_ms: float


class PassIR(Record, frozen=True, file="passir", compressed=True):
    """The IR on one side of a pass, with locations; it changed nothing where both sides are one blob."""

    process: str  # that recorded the pass, "<host>-<rank>-<pid>": another one may have derived its IR
    compilation: int
    index: int
    side: Literal["before", "after"]
    blob: Blob


class Derivation(Record, frozen=True, file="derivations"):
    """A compilation whose passes ran once more, so that their IR is known."""

    process: str
    compilation: int
    differs: str  # "": its artefacts came out as recorded; else what did not, or why it ended early


class StageArtefact(Record, frozen=True, file="artefacts"):
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
    after: Blob | None = None  # None: LLVM prints no IR after this pass, or died inside it

    @property
    def changed(self) -> bool:
        """Whether the pass is known to have changed the IR."""
        return self.after not in (None, self.before)


class LlvmPasses(Record, frozen=True, file="llvm", compressed=True):
    """LLVM's half of one compilation, run once more and printed pass by pass."""

    hash: str  # of the compilation
    passes: tuple[LlvmPass, ...]
    failure: str = ""  # how it ended, where it did in the last of these passes
    differs: tuple[str, ...] = ()  # stages whose artefact did not come out as recorded


class PackedBlob(Record, frozen=True, file="packed", compressed=True):
    """Where a blob lies that is compressed together with others like it: a part of one pack's content."""

    blob: Blob
    pack: str  # name of a file in blobs/
    start: int  # bytes, of the pack's uncompressed content
    size: int


KEPT_IN_MEMORY = 1 << 30  # bytes of tensors that a recording holds before it writes some, by default
KEPT_ON_DISK = 16 << 30  # bytes of tensors that a recording writes at most, by default


class KeptTensor(Record, frozen=True, file="outputs"):
    """The content of one tensor argument, before or after one launch."""

    launch: int
    position: int  # of the argument
    side: Literal["before", "after"]
    blob: Blob  # a safetensors file with one tensor called "tensor"


class Winner(Exact, frozen=True, file="winners"):
    """The configuration that an autotuner took for one kernel and one tuning key."""

    tuner: Literal["triton", "inductor"]  # @triton.autotune, or Inductor's CachingAutotuner
    kernel: str
    source: str  # digest of the kernel's Python source without its name: equal whatever was chosen
    key: tuple[str, ...]  # "n=1024", "torch.float32"; of Inductor size hints, argument types and constants
    config: Mapping[str, ScalarField]  # meta-parameters, num_warps, num_stages, ...
    how: Literal["tuned", "cached", "frozen"] = "tuned"  # cached: tuned before, in this process or on disk
    candidates: tuple[Mapping[str, ScalarField], ...] = ()  # as far as they are known

    def __post_init__(self) -> None:
        candidates = tuple(_all(from_json, one) for one in self.candidates)
        _set(self, config=_all(from_json, self.config), candidates=candidates)

    def stored(self) -> Winner:
        candidates = tuple(_all(to_json, one) for one in self.candidates)
        return _copy(self, config=_all(to_json, self.config), candidates=candidates)


class Landmark(Record, frozen=True, file="landmarks"):
    """A point at which the ranks of a job can be compared, written when it is reached."""

    index: int  # order in this process, from 0
    launch: int  # how many launches this process had made
    kind: Literal["collective", "update"]
    name: str  # the operator, "c10d::allreduce_"; "SGD.step"
    ranks: tuple[int, ...] = ()  # of a collective's process group
    inputs: tuple[TensorMeta, ...] = ()  # what a collective was given; the parameters before a first update
    results: tuple[TensorMeta, ...] = ()


class LandmarkDigests(Record, frozen=True, file="landmarkdigests"):
    """The bits of one side of a landmark, in the order of its tensors, written when they are known."""

    landmark: int
    side: Literal["inputs", "results"]
    digests: tuple[Digest, ...]


class Perturbed(Record, frozen=True, file="perturbed"):
    """What a run changed that no program may rely on."""

    what: str  # "memory", "winners", "programs", "delays", "late stream"
    how: str  # "0xff"; empty: it was not changed
    why_not: str = ""


class NotCovered(Record, frozen=True, file="uncovered"):
    """Something that the recorder could not see, and the setting that would show it."""

    what: str
    setting: str = ""  # empty: no setting shows it


class Outcome(Record, frozen=True, file="outcomes"):
    """How the case ended; a run without one was killed, or is still being recorded."""

    status: Literal[
        "passed", "differs", "failed", "interrupted", "compiled"
    ]  # compiled: nothing was executed
    detail: str  # the comparison with eager, or the error with the line of the case that it came from
    traceback: str = ""
    message: str = ""  # all that the error said; `detail` has its first line


class TensorValue(Record, frozen=True, tag_field="kind", tag="tensor"):
    """A tensor of a case: its bits and its layout."""

    meta: TensorMeta  # without device and offset, which are no part of a value
    digest: Digest
    address: int = 0  # of its first element when it was digested; no part of the value
    uninitialised: tuple[int, int] | None = None  # elements that nobody wrote: the first, and how many

    @property
    def identity(self) -> str:
        # the stride of a dimension of size 1 says nothing about where an element lies
        pairs = zip(self.meta.shape, self.meta.stride, strict=True)
        strides = [stride for size, stride in pairs if size > 1] if 0 not in self.meta.shape else []
        return f"{self.meta.dtype} {self.meta.shape} {strides} {self.digest.bits}"


class PlainValue(Record, frozen=True, tag_field="kind", tag="plain"):
    """A number, a string, None, an enumerator, or another value whose text is the whole of it."""

    type: str  # "float", "str", "NoneType"
    text: str  # as Python writes it: "-0.0", "nan", "'text'"

    @property
    def identity(self) -> str:
        return f"{self.type} {self.text}"


class Container(Record, frozen=True, tag_field="kind", tag="container"):
    """A list, tuple, dict or object: what it contains are values of their own."""

    type: str  # "tuple", "transformers.ModelOutput"
    keys: tuple[str, ...]  # as one writes them: "[0]", "['logits']", ".hidden"

    @property
    def identity(self) -> str:
        return f"{self.type} {sorted(self.keys)}"

    def text(self, other: object = None) -> str:
        """`dict of 13, with ['key']`: its length, and the keys that another container has not."""
        known = other.keys if isinstance(other, Container) else self.keys
        extra = [key for key in self.keys if key not in known]
        return f"{self.type} of {len(self.keys)}" + (f", with {', '.join(extra)}" if extra else "")


class Uncomparable(Record, frozen=True, tag_field="kind", tag="uncomparable"):
    """A value that has no equality which can be recorded."""

    type: str
    why: str

    @property
    def identity(self) -> str:
        return f"{self.type} that cannot be compared"


Value: TypeAlias = TensorValue | PlainValue | Container | Uncomparable


class Result(Record, frozen=True, file="results"):
    """What the compiled case gave or left, value by value: its result, gradients, parameters, state."""

    name: (
        str  # "output", "output['logits']", "grad of input 1", "parameter head.weight", "input 0 afterwards"
    )
    value: Value


class Start(Record, frozen=True, file="starts"):
    """What the compiled case started from, value by value: inputs, parameters, state, random generators."""

    name: str  # as of its `Result`, "input 0"
    value: Value


class ReadVariable(Record, frozen=True, file="variables"):
    """An environment variable that the code of the case read, as it was when it was first read."""

    name: str
    value: str | None  # None: it was not set
    redacted: bool = False  # the value was left out, as the name says that it is secret


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


class Selection(Record, frozen=True):
    """Launches by kernel, number, phase and rank; what is left empty excludes nothing."""

    kernels: tuple[str, ...] = ()  # globs of kernel names
    launches: tuple[int, int] | None = None  # START, STOP: in the order of a whole process, from 0
    phases: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()

    def wants(self, index: int, kernel: str, phase: str, rank: int | None = None) -> bool:
        """Whether a launch is among them; rank None: of any rank."""
        return (
            (self.launches is None or self.launches[0] <= index < self.launches[1])
            and (not self.phases or phase in self.phases)
            and (not self.kernels or any(fnmatchcase(kernel, glob) for glob in self.kernels))
            and (not self.ranks or rank is None or rank in self.ranks)
        )


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
    selection: Selection = Selection()  # which launches were recorded
    operators: Literal["digests", "writers", "none"] = "writers"  # what was recorded of them


class KernelArg(Exact, frozen=True):
    """One argument of one launch, joined."""

    name: str
    declared: Role
    tensor: TensorMeta | None = None
    storage: int | None = None
    value: Scalar = None
    before: Digest | None = None
    after: Digest | None = None
    writer: str | None = None  # the operator outside of Triton that wrote it last, "aten::mm.out"
    addresses: bool = False  # see `Argument`

    def stored(self) -> KernelArg:
        return _copy(self, value=to_json(self.value))

    @property
    def reads(self) -> bool:
        """True if the kernel may read the memory that this argument points to."""
        return self.tensor is not None and may_read(self.declared)

    @property
    def modified(self) -> bool:
        """Whether the bits were seen to change; a buffer rewritten with the same bits is not modified."""
        return self.before is not None and self.after is not None and self.before.bits != self.after.bits

    @property
    def writes(self) -> bool:
        """True if the kernel may write the memory that this argument points to."""
        return self.tensor is not None and may_write(self.declared)


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
    site: CallSite | None = None  # None: unknown
    thread: int = 0

    @property
    def kernel_name(self) -> str:
        return self.kernel.name


class OperatorTensor(Record, frozen=True):
    """A tensor that an operator read or wrote."""

    tensor: TensorMeta
    storage: int
    digest: Digest | None = None  # before the operator if it read the tensor, after it if it wrote it


class Operator(Record, frozen=True):
    """One call of an operator outside of Triton, joined with its signature, its site and its digests."""

    index: int
    launch: int
    name: str
    arguments: str
    reads: tuple[OperatorTensor, ...]
    writes: tuple[OperatorTensor, ...]
    allocates: bool = False
    random: bool = False
    site: CallSite | None = None
    thread: int = 0


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
    before: Blob  # "": it is not known, as it could not be derived
    after: Blob | None = None  # None: the process died inside this pass; "": not known
    wall_ms: float | None = None

    @property
    def changed(self) -> bool:
        """Whether the pass is known to have changed the IR, its locations included."""
        return self.after != self.before and "" not in (self.before, self.after)


@dataclass(frozen=True, slots=True)
class Workload:
    """What a case runs: `fn(*args, **kwargs)`, and its gradients if `backward`."""

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """How a launch of the program is replaced."""

    module: str  # Python text that defines KERNEL, CONSTANTS and OPTIONS
    grid: tuple[int, int, int]
    own_source: str  # of the program's own launch, as it was recorded: another one is not replaced
    own_grid: tuple[int, int, int]
    eager: bool = False  # executed by Triton's interpreter, on the host


Side: TypeAlias = Literal["a", "b"]  # one of two runs


class DifferingElements(Record, frozen=True):
    """The elements of one argument that differ."""

    argument: str
    count: int
    of: int
    ranges: tuple[tuple[int, int], ...]  # START:STOP in logical order; the first few
    largest: float  # |difference| of two finite elements


class ReplaySeries(Record, frozen=True):
    """One launch executed several times on the same bytes."""

    launched: Side  # whose launch: code, constants, scalars, grid and layout
    inputs: Side  # whose contents
    outcomes: tuple[Mapping[str, Digest], ...]  # what each replay left, by argument; of the first one, too
    varying: tuple[DifferingElements, ...]  # in any replay, from the first
    unwritten: tuple[DifferingElements, ...]  # with what memory held of which no content was kept
    written: Mapping[
        str, tuple[int, ...]
    ]  # of arguments in `unwritten`: the ranges of `Digest.tiles` without it


class SeriesDifference(Record, frozen=True):
    """Where the first replays of two series differ."""

    series: tuple[int, int]
    elements: tuple[DifferingElements, ...]


class ReplayResult(Record, frozen=True):
    """What replays of one launch left."""

    device: str  # the name of the GPU; empty: Triton's interpreter
    series: tuple[ReplaySeries, ...]
    differences: tuple[SeriesDifference, ...]  # of the series that differ


class Rerun(Record, frozen=True):
    """The results of a case that ran with launches replaced."""

    results: Mapping[str, str]  # the identity of each result's value
    outcome: Outcome
    refused: str = ""  # the kernel that could not be replaced; why is the outcome's detail


@dataclass(frozen=True, slots=True)
class Case:
    """A file with `build(device) -> Workload`."""

    name: str
    path: Path
    description: str
    build: Callable[[str], Workload]
