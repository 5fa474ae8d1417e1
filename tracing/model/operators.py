"""Operators outside of Triton, and landmarks: collectives and updates of parameters."""

from __future__ import annotations

from typing import Literal

from tracing.model.launches import CallSite
from tracing.model.record import Blob, Record
from tracing.model.tensors import Digest, TensorMeta


class OperatorSignature(Record, frozen=True, file="operatorsignatures", segmented=True):
    """The common facts of calls of an operator outside of Triton: all except the bits and the storages."""

    id: int
    name: str  # "aten::add_.Tensor"
    arguments: str  # those that are no tensors, as Python writes them: "alpha=2"; of the first such call
    reads: tuple[TensorMeta, ...]
    writes: tuple[TensorMeta, ...]  # outputs and mutated arguments
    allocates: bool = False  # its output is uninitialised except for its inputs: `empty`, `resize_`
    random: bool = False  # it draws from a generator: equal inputs need not give equal outputs

    def arguments_of(self, call: OperatorCall) -> str:
        """The arguments of a call that are no tensors: "alpha=2"."""
        return call.arguments or self.arguments


class OperatorCall(Record, frozen=True, file="operators", compressed=True, segmented=True):
    """One call of an operator outside of Triton that wrote or allocated memory."""

    index: int  # order in this process, from 0
    launch: int  # number of launches that this process had made when the operator had run
    signature: int
    storages: tuple[int, ...]  # `Storage.id` of what it read, then of what it wrote
    site: int = -1
    thread: int = 0
    arguments: str = ""  # if floating-point numbers among them differ from those of its signature


class OperatorDigests(Record, frozen=True, file="operatordigests", compressed=True, segmented=True):
    """The bits that one operator read and wrote, in its signature's order; of `--operators digests`.

    `Digest.bits` is empty where none could be taken.
    """

    operator: int
    before: tuple[Digest, ...]
    after: tuple[Digest, ...]


class KeptOperatorTensor(Record, frozen=True, file="operatortensors", segmented=True):
    """The content of one tensor that an operator read, before the operator."""

    operator: int
    position: int  # among the tensors that it read
    blob: Blob  # as `KeptTensor.blob`


class Landmark(Record, frozen=True, file="landmarks", segmented=True):
    """A point at which the ranks of a job can be compared, written when it is reached."""

    index: int  # order in this process, from 0
    launch: int  # number of launches that this process had made
    kind: Literal["collective", "update"]
    name: str  # the operator, "c10d::allreduce_"; "SGD.step"
    ranks: tuple[int, ...] = ()  # of a collective's process group
    inputs: tuple[TensorMeta, ...] = ()  # inputs of a collective; the parameters before a first update
    results: tuple[TensorMeta, ...] = ()
    storages: tuple[int, ...] = ()  # of an update: `Storage.id` of each parameter
    names: tuple[str, ...] = ()  # of a first update: of each parameter, "2.bias"; "": no module holds it
    gradients: tuple[int, ...] = ()  # of an update: `Storage.id` of the gradient of each parameter; -1: none
    operators: int = 0  # number of operator calls that this process had made


class LandmarkDigests(Record, frozen=True, file="landmarkdigests", segmented=True):
    """The bits of one side of a landmark, in the order of its tensors, written when they are known."""

    landmark: int
    side: Literal["inputs", "results"]
    digests: tuple[Digest, ...]


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
    step: int | None = None  # of the program; None: no steps, or not known

    @property
    def from_python(self) -> bool:
        """True for the operator of `torch.tensor([1, 2])` and `x[0] = 1`: it computes nothing."""
        return self.name == "aten::lift_fresh"
