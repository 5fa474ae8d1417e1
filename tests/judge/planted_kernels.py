"""Programs whose launches are judged, with a fault planted in the source of one of their kernels."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache

from tracing import store
from tracing.analyze.judge.judgement import RunJudgement
from tracing.judge.run_referee import judge_run
from tracing.model import SCHEMA, KeptTensor, KernelLaunch, RunInfo, Selection
from tracing.program.device import Device
from tracing.record.graphs.graph_nodes import graph_json
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import EVERYTHING
from tracing.record.outputs import Keep, load
from tracing.store.graph_file import FxGraph, encoded
from tracing.upstream.patch import Method, patched
from tracing.upstream.torch.dynamo import forget_compiled

Edit = Callable[[str], "str | None"]  # of a kernel's source; None: nothing in it to edit
_FLOAT = re.compile(r"(?<=tl\.full\(\[1\], )-?\d+\.\d+(?:e-?\d+)?|(?<== )-?\d+\.\d+(?:e-?\d+)?(?=\n)")
_OPERATOR = re.compile(r"(tmp\d+) ([+\-*/]) (tmp\d+)")
_LOAD = re.compile(r"tl\.load\((\w+) \+ \((?P<index>[^\n]*?)\), (?P<mask>[^\n,)]+)")
_STRIDE = re.compile(r"\b(\d+)\*(x\d|r0_\d)")
_FUNCTION = re.compile(r"(?:tl_math|libdevice|tl)\.(exp|sin|abs|tanh|sqrt|log|sigmoid|rsqrt)\(")


@dataclass(frozen=True)
class Program:
    """What is compiled and called: a function of tensors, or a module, and whether gradients are taken."""

    function: Callable[..., Any]
    arguments: Callable[[], Sequence[Any]]
    backward: bool = False
    calls: int = 1
    dynamic: bool | None = None


def edit_code(edit: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Edit the code that Inductor generates for a graph after it was recorded, and before it is imported."""
    write = PyCodeCache.write

    def edited(source: str, *others: Any, **options: Any) -> Any:
        of_graph = "async_compile.wait(globals())" in source
        return write(edit(source) if of_graph else source, *others, **options)

    monkeypatch.setattr(PyCodeCache, "write", edited)


@contextmanager
def virtual_gpu() -> Iterator[Device]:
    """A virtual GPU, whose caches are shared by what is recorded meanwhile."""
    device = Device("sm_90")
    with device.active():
        yield device


def recorded(
    program: Program,
    folder: Path,
    device: Device,
    plant: Callable[[str, str], str] | None = None,
    selection: Selection = EVERYTHING,
    operators: Literal["none", "writers"] = "none",
) -> store.Run:
    """A run of a program on the virtual GPU that kept what its launches read and wrote.

    plant     -- name and source of a kernel -> the source that is compiled
    selection -- the launches that are recorded
    operators -- writers: calls of ATen, too
    """
    forget_compiled()
    PyCodeCache.cache_clear()
    with ExitStack() as stack:
        stack.enter_context(planted(plant))
        info = RunInfo(SCHEMA, "program", "program.py", (), 0, store.now(), device.environment())
        writer = store.create(folder, info)
        stack.callback(writer.close)
        torch.manual_seed(0)
        compiled = torch.compile(program.function, dynamic=program.dynamic)
        with LaunchRecorder(writer, "none", operators=operators, keep=Keep(True), selection=selection):
            for _ in range(program.calls):
                _run(program, compiled)
        return store.Run(writer.path)


def _run(program: Program, compiled: Any) -> None:
    outputs = compiled(*program.arguments())
    if program.backward:
        outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
        torch.autograd.backward([one.float().sum() for one in outputs if one.requires_grad])


@contextmanager
def planted(plant: Callable[[str, str], str] | None) -> Iterator[None]:
    def around(original: Method) -> Method:
        def triton(self: Any, kernel_name: str, source_code: str, *args: Any, **kwargs: Any) -> Any:
            source = plant(kernel_name, source_code) if plant else source_code
            return original(self, kernel_name, source, *args, **kwargs)

        return triton

    with patched(AsyncCompile, "triton", around):
        yield


def traced(function: Callable[..., Any], *arguments: Any) -> FxGraph:
    """The first graph that Dynamo traces of a function."""
    graphs: list[FxGraph] = []

    def backend(module: torch.fx.GraphModule, _: object) -> Any:
        graphs.append(msgspec.json.decode(encoded(graph_json(module)), type=FxGraph))
        return module.forward

    forget_compiled()
    torch.compile(function, backend=backend)(*arguments)
    return graphs[0]


def judgement(run: store.Run) -> RunJudgement:
    processes = run.processes()
    return judge_run(run, processes[0]) if processes else RunJudgement((), (), ())


def edits(source: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """FxSources with one fault each, and what it is: a constant, an operator, an index, a mask."""
    head, body = _split(source)
    for kind, pattern, replace in (
        ("constant", _FLOAT, lambda m: repr(float(m[0]) * 1.5 + 0.25)),
        ("operator", _OPERATOR, lambda m: f"{m[1]} {'-' if m[2] in '+*/' else '+'} {m[3]}"),
        ("function", _FUNCTION, _other_function),
        ("index", _STRIDE, lambda m: f"{max(1, int(m[1]) - 1)}*{m[2]}"),
        ("mask", _LOAD, lambda m: f"{m[0]} & ({_index(body)} != 5)" if m["mask"] != "None" else m[0]),
    ):  # fmt: skip
        matches = [*pattern.finditer(body)]
        if kind == "index":
            matches = [m for m in matches if "tl.load" in body[body.rfind("\n", 0, m.start()) : m.start()]]
        if matches:
            match = rng.choice(matches)
            changed = body[: match.start()] + replace(match) + body[match.end() :]
            if kind == "mask":
                changed = _with_other(changed, match.start())
            if changed != body:
                yield kind, head + changed


def _other_function(match: re.Match[str]) -> str:
    return f"tl_math.{'exp' if match[1] == 'abs' else 'abs'}("


def _index(body: str) -> str:
    return "xindex"


def _with_other(text: str, start: int) -> str:
    # what a masked load gives is 0, not what happens to be there
    end = text.index("\n", start)
    line = text[start:end]
    if "other=" in line:
        return text
    return text[:start] + re.sub(r"(!= 5\))", r"\1, other=0.0", line, count=1) + text[end:]


def _split(source: str) -> tuple[str, str]:
    at = source.index("def triton_")
    return source[:at], source[at:]


def launches(run: store.Run) -> list[KernelLaunch]:
    return [*run.launches()]


def left(run: store.Run) -> dict[int, dict[int, torch.Tensor]]:
    """What each launch left, by position."""
    after: dict[int, dict[int, torch.Tensor]] = {}
    for one in run.records(KeptTensor):
        if one.side == "after":
            after.setdefault(one.launch, {})[one.position] = load(run.bytes(one.blob))
    return after


def first_change(right: store.Run, wrong: store.Run) -> tuple[int, float] | None:
    """The first launch that left something else, and by how much, relative to the largest value."""
    return next(((launch, size) for launch, size in changes(right, wrong).items() if size), None)


def changes(right: store.Run, wrong: store.Run) -> dict[int, float]:
    """By how much each launch left something else, relative to the largest value."""
    a, b = left(right), left(wrong)
    return {
        launch: max(
            (_apart(a[launch][i], b[launch][i]) for i in a[launch].keys() & b[launch].keys()), default=0.0
        )
        for launch in sorted(a.keys() & b.keys())
    }


def _apart(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if torch.equal(torch.nan_to_num(a.double()), torch.nan_to_num(b.double())):
        return 0.0
    if not a.is_floating_point():
        return float("inf")
    a, b = a.double().nan_to_num(), b.double().nan_to_num()
    return float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))


def scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="judged-"))
