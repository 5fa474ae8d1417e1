"""Kernel launches: kernel, call site, arguments, times."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from tracing.model.one_line import one_line
from tracing.model.record import (
    Blob,
    Exact,
    NonFinite,
    Record,
    Scalar,
    ScalarField,
    converted,
    from_json,
    set_fields,
    to_json,
    with_fields,
)
from tracing.model.tensors import Digest, TensorMeta

Role: TypeAlias = Literal["in", "out", "in_out", "none", "unknown"]


Phase: TypeAlias = Literal["forward", "backward"]


def may_read(role: Role) -> bool:
    """True if a kernel may read the memory of an argument with this role."""
    return role in ("in", "in_out", "unknown")


def may_write(role: Role) -> bool:
    """True if a kernel may write the memory of an argument with this role."""
    return role in ("out", "in_out", "unknown")


class ArgumentRole(Exact, frozen=True):
    """One argument of a kernel, with its role: how the kernel accesses the memory that it points to."""

    name: str
    declared: Role = "none"  # by the kernel's TTIR
    tensor: TensorMeta | None = None

    @property
    def reads(self) -> bool:
        """True if the kernel may read the memory that this argument points to."""
        return self.tensor is not None and may_read(self.declared)

    @property
    def writes(self) -> bool:
        """True if the kernel may write the memory that this argument points to."""
        return self.tensor is not None and may_write(self.declared)


class Descriptor(msgspec.Struct, frozen=True):
    """A tensor descriptor of the host: the blocks by which a kernel accesses the tensor that it is of."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    block_shape: tuple[int, ...]
    padding: str = "zero"  # of elements outside of the shape: zero or nan
    round_f32_to_tf32: bool = False


class Argument(ArgumentRole, frozen=True):
    """One argument of a launch, without the facts that change from launch to launch."""

    value: ScalarField = None  # of an argument that is not a tensor
    addresses: bool = False  # its value or content is used as addresses, which differ in every run
    descriptor: Descriptor | None = None  # by which the tensor is passed

    def __post_init__(self) -> None:
        if isinstance(self.value, NonFinite):
            set_fields(self, value=from_json(self.value))

    def stored(self) -> Argument:
        return with_fields(self, value=to_json(self.value)) if isinstance(self.value, float) else self


class CopiedFunction(msgspec.Struct, frozen=True):
    """A function of a generated file, from its `def` on, and the user's function that it is a copy of."""

    file: str
    line: int
    count: int  # of lines
    user_file: str
    user_line: int

    def of_user(self, file: str, line: int) -> tuple[str, int] | None:
        """The user's file and line of a line of the copy; None: it is no line of it."""
        if file != self.file or not self.line <= line < self.line + self.count:
            return None
        return self.user_file, self.user_line + line - self.line


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
    undefined: tuple[str, ...] = ()  # names that are missing in `module`
    copied: tuple[CopiedFunction, ...] = ()  # by Inductor, from the user's files
    options: Mapping[str, str] | None = None  # of the compiler, as Python writes them; None: not known
    fields: Mapping[str, tuple[str, ...]] = {}  # of arguments that are named tuples: `args`, `args.1`


class Signature(Exact, frozen=True, file="signatures", segmented=True):
    """The common facts of launches of a kernel: everything except the bits and the storages."""

    id: int
    kernel: int
    grid: tuple[int, int, int]
    phase: Phase
    device: str
    args: tuple[Argument, ...]

    def stored(self) -> Signature:
        return with_fields(self, args=tuple(arg.stored() for arg in self.args))


class LaunchLine(Record, frozen=True, file="launches", compressed=True, segmented=True):
    """One launch as written when it starts."""

    index: int  # order of launch in this process, from 0
    signature: int
    stream: int
    storages: tuple[int, ...]  # `Storage.id` of each tensor argument
    writers: Mapping[int, str] = {}
    site: int = -1  # `CallSite.id`; -1: unknown
    thread: int = 0  # threads are numbered in the order of their first launch or operator


class CallSite(Record, frozen=True, file="sites"):
    """A line of the program's own Python code, outside of torch, Triton and generated code."""

    id: int  # -1: not of a call, but of the first operation that a launch of compiled code computes
    file: str
    line: int
    function: str
    instruction: int = 0  # distinguishes two calls on one line

    @property
    def of_operation(self) -> bool:
        """True for the line of an operation; False for that of a call."""
        return self.id < 0

    def __str__(self) -> str:
        """`cases/silu.py:9 in forward`, relative to the working directory where the file is inside of it."""
        near = os.path.relpath(self.file or os.curdir)
        file = self.file if near.startswith(os.pardir) else near
        return one_line(f"{file}:{self.line} in {self.function}")


class LaunchTime(Record, frozen=True, file="times", compressed=True, segmented=True):
    """The duration of one launch."""

    launch: int
    wall_us: float  # on the host, until it returned; a first launch includes compiling and tuning
    device_us: float | None = None  # between events around it on its stream; None: not on a GPU, or captured


class UserHash(Exact, frozen=True, file="hashes", compressed=True, segmented=True):
    """The values of a user's hash_fn before and after one launch; keys are argument positions."""

    launch: int
    before: Mapping[int, ScalarField]
    after: Mapping[int, ScalarField]

    def __post_init__(self) -> None:
        set_fields(self, before=converted(from_json, self.before), after=converted(from_json, self.after))

    def stored(self) -> UserHash:
        return with_fields(self, before=converted(to_json, self.before), after=converted(to_json, self.after))


class KernelArg(ArgumentRole, frozen=True):
    """One argument of one launch, joined."""

    storage: int | None = None
    value: Scalar = None
    before: Digest | None = None
    after: Digest | None = None
    writer: str | None = None  # the operator outside of Triton that wrote it last, "aten::mm.out"
    addresses: bool = False  # see `Argument`
    descriptor: Descriptor | None = None

    def stored(self) -> KernelArg:
        return with_fields(self, value=to_json(self.value))

    @property
    def modified(self) -> bool:
        """True if the bits were seen to change, or if the kernel writes memory that was not digested before.

        A buffer that was seen to be rewritten with the same bits is not modified.
        """
        if self.before is None or self.after is None:
            return self.after is not None and self.writes
        return self.before.bits != self.after.bits


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
    step: tuple[int, int] | None = None  # and its number among the launches of that step; None: no steps

    @property
    def kernel_name(self) -> str:
        return self.kernel.name
