"""The outcome of a program, and its results, value by value."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from tracing.model.record import Blob, Record
from tracing.model.tensors import Digest, TensorMeta

_EXIT = re.compile(r"(?:exit status |os\._exit\()(-?\d+)\b")  # how the detail of a program begins


class Outcome(Record, frozen=True, file="outcomes"):
    """The ending of the case; a run without one was killed, or is still being recorded."""

    # not decided: no result is known to be wrong, and of some neither compiled nor eager is right
    # out of bounds: it agrees with eager, but a kernel left its arguments
    # compiled: nothing was executed
    # ended: a program, which is not compared with eager
    status: Literal[
        "passed", "differs", "not decided", "out of bounds", "failed", "interrupted", "compiled", "ended"
    ]
    detail: str  # the comparison with eager, or the error with the line of the case that it came from
    traceback: str = ""
    message: str = ""  # the whole message of the error; `detail` has its first line
    eager_repeats: bool = True  # False: eager itself gives another result each time
    differing: tuple[str, ...] = ()  # names of the results that differ from eager's, the worst first
    other_numbers: tuple[str, ...] = ()  # others, of which a compile that draws eager's numbers was compared
    laid_out: tuple[str, ...] = ()  # those of them that differ in strides or dtype, and not in their values
    less_precise: tuple[str, ...] = ()  # "output is 8.7 roundings from exact, eager's 0.53", the worst first
    undeclared: tuple[str, ...] = ()  # "mylib::op writes x, and its schema does not say so (f.py:2)"

    @property
    def fails(self) -> bool:
        """True if it raised, or if the exit status of a program is not 0."""
        return self.status == "failed" or (self.status == "ended" and self.exit_status not in (None, 0))

    @property
    def exit_status(self) -> int | None:
        """The exit status of a program that ended; None: a case, code, or it raised."""
        known = _EXIT.match(self.detail) if self.status == "ended" else None
        return int(known[1]) if known else None


class Cut(Record, frozen=True, file="cuts"):
    """An error of the recorder that ended the recording before the program ended."""

    error: str  # "OSError: No space left on device (tracing/store/run_files.py:88)"
    launches: int  # seen until then


class Failure(Record, frozen=True, file="failures"):
    """What failed when a case failed in compiled or generated code."""

    kind: Literal[
        "frontend",
        "worker",
        "pass",
        "stage",
        "launch",
        "graph pass",
        "lowering",
        "operator",
        "C++",
        "generated code",
        "kernel",
    ]
    name: str  # of the kernel, the graph pass or the operator
    reason: str  # one line; `Outcome.message` has the whole message
    python: str = ""  # the line of the user's code, "case.py:9"; empty: not known
    code: str = ""  # that line, or the line of generated code that raised
    step: str = ""  # the pass, the assembler or the FX node
    nodes: str = ""  # that generated code was made from, "[sin, mul]"
    stage: str = ""  # of the compile, "ttgir"
    source: Blob = ""  # of the kernel or of the generated code; empty: none is known
    line: int = 0  # of the source, from 1; 0: not known
    file: str = ""  # path of the file in `python`; empty: that of the program, or not known

    @property
    def sentence(self) -> str:
        """What failed and why, in one line: "kernel scale does not compile: NameError('no x')"."""
        name = f"{self.name} (of nodes {self.nodes})" if self.nodes else self.name
        subject = {
            "frontend": f"kernel {name} does not compile",
            "worker": f"kernel {name} does not compile in a worker process",
            "pass": f"kernel {name}: pass {self.step} ({self.stage}) failed",
            "stage": f"kernel {name}: {self.step} failed",
            "launch": f"kernel {name} cannot be launched",
            "graph pass": f"graph pass {name} fails{f' at FX node {self.step}' if self.step else ''}",
            "lowering": f"Inductor cannot lower {name} (FX node {self.step})",
            "operator": f"operator {name} (FX node {self.step}) fails while its graph is compiled",
            "C++": f"generated C++ of {name} does not compile",
            "generated code": f"generated code raises at {name}",
            "kernel": f"your kernel {name} fails",
        }[self.kind]
        return f"{subject}: {self.reason}"

    def problem(self, program: str) -> str:
        """One line as compilers print it, "/home/me/case.py:9: error: ..."; "" if the file is not known.

        program -- path of the case or of the program
        """
        name, _, line = self.python.rpartition(":")
        path = self.file or (program if name and program.endswith(f"/{name}") else "")
        return f"{path}:{line}: error: {self.sentence}" if path and line.isdecimal() else ""


class TensorValue(Record, frozen=True, tag_field="kind", tag="tensor"):
    """A tensor of a case: its bits and its layout."""

    meta: TensorMeta  # without device and offset, which do not belong to a value
    digest: Digest
    address: int = 0  # address of the first element when it was digested; not part of the value
    uninitialised: tuple[int, int] | None = None  # first unwritten element, and their number

    @property
    def identity(self) -> str:
        # the stride of a dimension of size 1 says nothing about the position of an element
        pairs = zip(self.meta.shape, self.meta.stride, strict=True)
        strides = [stride for size, stride in pairs if size > 1] if 0 not in self.meta.shape else []
        return f"{self.meta.dtype} {self.meta.shape} {strides} {self.digest.bits}"


class PlainValue(Record, frozen=True, tag_field="kind", tag="plain"):
    """A number, a string, None, an enumerator, or another value that its text describes completely."""

    type: str  # "float", "str", "NoneType"
    text: str  # as Python writes it: "-0.0", "nan", "'text'"

    @property
    def identity(self) -> str:
        return f"{self.type} {self.text}"


class Container(Record, frozen=True, tag_field="kind", tag="container"):
    """A list, tuple, dict or object: its members are separate values."""

    type: str  # "tuple", "transformers.ModelOutput"
    keys: tuple[str, ...]  # as one writes them: "[0]", "['logits']", ".hidden"

    @property
    def identity(self) -> str:
        return f"{self.type} {sorted(self.keys)}"

    def text(self, other: object = None) -> str:
        """`dict of 13, with ['key']`: its length, and the keys that another container lacks."""
        known = other.keys if isinstance(other, Container) else self.keys
        extra = [key for key in self.keys if key not in known]
        return f"{self.type} of {len(self.keys)}" + (f", with {', '.join(extra)}" if extra else "")


class Uncomparable(Record, frozen=True, tag_field="kind", tag="uncomparable"):
    """A value for which no record can decide whether it equals another one."""

    type: str
    why: str

    @property
    def identity(self) -> str:
        return f"{self.type} that cannot be compared"


Value: TypeAlias = TensorValue | PlainValue | Container | Uncomparable


class Result(Record, frozen=True, file="results"):
    """A result of the compiled case, value by value: its result, gradients, parameters, state."""

    # "output", "output['logits']", "grad of input 1", "parameter head.weight", "input 0 afterwards"
    name: str
    value: Value


class Start(Record, frozen=True, file="starts"):
    """The initial state of the compiled case by value: inputs, parameters, state, random generators."""

    name: str  # as of its `Result`, "input 0"
    value: Value


def is_gradient(result: str) -> bool:
    """True if this is the name of the gradient of an input or a parameter."""
    return result.startswith("grad of ")
