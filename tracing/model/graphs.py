"""Graphs of torch.compile: as traced, after each graph pass, as compiled, and their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from tracing.model.launches import Phase
from tracing.model.record import Blob, Record, ScalarField


class GraphText(Record, frozen=True, file="graphtexts", compressed=True):
    """A graph of torch.compile after one of Inductor's graph passes."""

    index: int  # order in this process
    compile_id: str  # Dynamo's number of the frame, and of its compile: "0/0"
    number: int  # number among the graphs of one compile and part: forward is 0, backward 1
    part: Literal["pre-grad", "joint", "post-grad"]
    name: str  # of the pass; "": before the first pass of the part; "end": after the last
    text: Blob  # one node a line, see `tracing.record.graphs.graph_passes`
    code: str = ""  # of a pass outside of torch, "mine (train.py:12)"; "": of torch, or an earlier version


class TracedGraph(Record, frozen=True, file="tracedgraphs"):
    """A graph that Dynamo gave to Inductor."""

    compile_id: str  # Dynamo's number of the frame, and of its compile: "0/0"
    text: Blob  # for people
    nodes: Blob  # JSON: see `tracing.store.graph_file.FxGraph`
    id: int = -1  # in this process; -1: of an earlier version


class CompiledGraph(Record, frozen=True, file="compiledgraphs"):
    """A graph of operators that Inductor compiled, written when it is called first."""

    id: int
    compile_id: str
    phase: Phase
    text: Blob  # before Inductor's passes, for people
    nodes: Blob
    post_grad_text: Blob  # after them, as it was lowered
    post_grad: Blob
    code: Blob  # the Python code that calls its kernels
    schedule: Blob  # JSON: see `tracing.store.graph_file.Schedule`
    precision: str = ""  # of products of float32 when it was called first: "high" allows TF32; "": not known
    default_dtype: str = "float32"  # of torch, when the graph was called first
    tf32: tuple[str, ...] | None = None  # allowed then: of "matmul", "conv", "rnn"; None: an earlier version


class SharedBytes(msgspec.Struct, frozen=True, array_like=True):
    """A result of a call has bytes in common with an earlier result, or with an input."""

    output: int
    side: Literal["input", "output"]  # of the other one
    other: int  # its position


class GraphCall(Record, frozen=True, file="graphcalls", compressed=True, segmented=True):
    """One call of a compiled graph that has returned."""

    index: int  # order of the calls' beginnings in this process, from 0
    graph: int
    launches: tuple[int, int]  # of this process while it ran: START, STOP
    thread: int
    numbers: Mapping[int, ScalarField] = {}  # inputs that are no tensors, as sizes, by position
    shared: Sequence[SharedBytes] = ()  # of a run that keeps contents
    generators: Mapping[int, tuple[int, int]] = {}  # inputs that are a GPU's: seed and offset before the call


class OverlappingInput(msgspec.Struct, frozen=True, array_like=True):
    """An input of a call whose memory lies between the first and the last byte of another one."""

    group: int  # of inputs that overlap
    offset: int  # bytes from the first byte of the group
    stride: tuple[int, ...]  # in elements


class TracedCall(Record, frozen=True, file="tracedcalls", compressed=True, segmented=True):
    """One call of the compiled form of a graph that Dynamo traced, of a run that keeps contents."""

    # its inputs are the placeholders of the graph, and then the tensors that it reads as attributes
    index: int  # in the order of `GraphCall.index`
    stop: int  # calls of compiled graphs from `index` to it, on the same thread, are parts of this one
    graph: int  # as `TracedGraph.id`
    thread: int
    numbers: Mapping[int, ScalarField] = {}  # as of `GraphCall`
    shared: Sequence[SharedBytes] = ()
    overlapping: Mapping[int, OverlappingInput] = {}  # inputs that may have bytes in common, by position
    autocast: Mapping[str, str] = {}  # around the call: a device and the dtype, {"cuda": "bfloat16"}
    default_dtype: str = "float32"  # as of `CompiledGraph`
    precision: str = ""  # as of `CompiledGraph`
    tf32: tuple[str, ...] | None = None  # as of `CompiledGraph`


class TracedBackward(Record, frozen=True, file="tracedbackwards", compressed=True, segmented=True):
    """One backward of a call of the compiled form of a graph that Dynamo traced.

    `GraphTensor.position` of an input is that of a result of the call, whose gradient it is; of an output,
    that of an input of the call.
    """

    index: int  # as `TracedCall.index`
    stop: int
    call: int  # `TracedCall.index` of the forward
    thread: int
    entered: tuple[int, ...] = ()  # results of the call whose gradients entered
    given: tuple[int, ...] = ()  # inputs of the call that got a gradient
    absent: tuple[int, ...] = ()  # inputs of the call whose gradient is None
    views: bool = False  # the gradient of a tensor entered that is no result, as the base of a view
    others: bool = False  # it returns the gradient of a tensor that is no input, or of several ones


class GraphTensor(Record, frozen=True, file="graphtensors", segmented=True):
    """The content of one input or output of one call of a graph."""

    call: int  # as `index` of GraphCall, TracedCall or TracedBackward
    position: int
    side: Literal["input", "output", "afterwards"]  # afterwards: of an input that the graph overwrites
    blob: Blob  # as `KeptTensor.blob`
