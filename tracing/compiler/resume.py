"""Continue a compilation from recorded or edited IR.

Calls the stage functions of Triton's own backend with the given IR; passes before the position are counted
but not run. So the other code of a stage, LLVM and the assembler run as in an ordinary compilation.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.compiler.block_locations import set_block_locations
from tracing.compiler.pipeline import stepwise
from tracing.compiler.stderr import collected, errors_in
from tracing.compiler.steps import Observer, Steps
from tracing.errors import Problem
from tracing.model import Blob, Compilation, PassRecord
from tracing.upstream.triton.backends import PACKAGE, GPUTarget, Language, make_backend
from tracing.upstream.triton.libtriton import ir

_KERNEL = "module { tt.func public @kernel() { tt.return } }"  # the smallest that every stage takes
_PREFIX = "tracing-resume-"
_HERE = re.compile(rf'loc\("[^"]*{_PREFIX}[^"]*":(\d+:\d+)\)')


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The position at which a compilation continues, and its IR."""

    ir: str  # the text at that position
    stage: str  # "ttir", "ttgir", "llir"
    index: int  # `PassStart.index` of the next pass; after the last pass of the stage, its index plus one
    # The IR before the stage's first pass, unless `index` is that pass. Some backends inspect it: Triton 3.8
    # for sm_90 derives LLVM's vectorisation options from it
    entered: str | None = None
    file: str | None = None  # where `ir` is from, for messages
    locations: Sequence[str] = ()  # of its block arguments, which the text lacks: `block_locations`


def resume_point_before(
    record: PassRecord, passes: Sequence[PassRecord], text: Callable[[Blob], str]
) -> ResumePoint:
    """The position before a recorded pass.

    passes -- of its compilation, in order
    text   -- the IR in a blob
    """
    first = next(one for one in passes if one.stage == record.stage)
    return ResumePoint(text(record.before), record.stage, record.index, entered=text(first.before))


def resume(
    compilation: Compilation,
    point: ResumePoint,
    *,
    last: str | None = None,
    drop: Collection[int] = (),
    observer: Observer | None = None,
) -> dict[str, bytes | str]:
    """Compile IR from one position of a recorded compilation to its end; return the artefact of every stage.

    last     -- the artefact to end with: "ptx"; None: the backend's last one, "cubin" or "hsaco"
    drop     -- indices of passes to leave out
    observer -- receives the passes that run

    Cost: that of the rest of the compilation. C++ messages are captured from file descriptor 2, so the output
    of other threads is delayed to the end; only one such call runs at a time.

    Raises Problem, with Triton's own message where there is one, for IR that does not parse or does not
    compile, for a target or an option that this Triton does not know, and for an index outside of its stage.
    """
    backend, stages, metadata = _stages(compilation)
    earlier, wanted = _split(compilation, list(stages), point.stage, last)
    steps = Steps([observer] if observer else [], first=point.index, drop=drop)
    with ExitStack() as stack:
        if observer is not None:
            stack.callback(observer.ended)
        errors = _Errors(stack.enter_context(collected()), point.file or "IR")
        stack.enter_context(stepwise())
        steps.count = _passes_before(backend, stages, earlier, metadata)
        source = _source(point, backend, steps.count, errors)
        artefacts: dict[str, bytes | str] = {}
        for name in wanted:
            begin = steps.count
            source = _stage(steps, name, stages[name], source, metadata, errors)
            artefacts[name] = source if isinstance(source, (str, bytes)) else str(source)
            if name == point.stage:
                _require_within(point, begin, steps.count)
    return artefacts


def stages_of(compilation: Compilation) -> list[str]:
    """The stages of a compilation, from its first one on: "ttir", "ttgir", "llir", "ptx", "cubin".

    Raises Problem as `resume` does.
    """
    _, stages, _ = _stages(compilation)
    names = list(stages)
    _split(compilation, names, compilation.first, None)
    return names[names.index(compilation.first) :]


def options_of(options: Mapping[str, str]) -> dict[str, Any]:
    """The values of `Compilation.options`, in the form for a backend's `parse_options`.

    Libraries that are not on this machine are left out: the backend adds its own.

    Raises Problem for text that is no Python literal.
    """
    values = {name: _literal(name, text) for name, text in options.items()}
    libraries = values.get("extern_libs") or ()
    for word in (values.get("ptx_options") or "").split():
        if "/" in word or re.fullmatch(r"--?o(?!pt-level).*", word):
            raise Problem(f"the option {word} of ptxas names a file", "a compilation here writes none")
    return values | {"extern_libs": tuple(one for one in libraries if Path(one[1]).exists())}


def _stages(compilation: Compilation) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    # the backend, the functions of its stages, and the metadata that they fill in
    backend, options = _backend(compilation.target, compilation.options)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, _language(compilation.language))
    return backend, stages, {"hash": "", "target": backend.target, **vars(options)}


def _split(
    compilation: Compilation, names: list[str], stage: str, last: str | None
) -> tuple[list[str], list[str]]:
    # the stages before `stage` that the compilation had, and those to run
    for name in (compilation.first, stage, last or stage):
        if name not in names:
            raise Problem(f"{compilation.target} has no stage {name}", f"stages: {', '.join(names)}")
    begin, end = names.index(stage), names.index(last) + 1 if last else len(names)
    if end <= begin:
        raise Problem(f"stage {last} is before stage {stage}", "end with a stage after the one to start in")
    return names[names.index(compilation.first) : begin], names[begin:end]


def _require_within(point: ResumePoint, begin: int, end: int) -> None:
    if not begin <= point.index <= end:
        raise Problem(
            f"pass {point.index} is not in stage {point.stage}",
            f"it has passes {begin} to {end - 1}; {end} means: after all of them",
        )


def _literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Problem(
            f"option {name} is {text}, which is no Python literal",
            "write it as `tracing passes` shows it: num_warps=4, arch='sm90'",
        ) from None


def _backend(target: str, options: Mapping[str, str]) -> tuple[Any, Any]:
    name, _, arch = target.partition(":")
    try:
        known = GPUTarget(name, int(arch) if arch.isdecimal() else arch, 0)
        warp_size = make_backend(known).parse_options({}).warp_size
        backend = make_backend(GPUTarget(name, known.arch, warp_size))
        default = backend.parse_options({})
    except (RuntimeError, ValueError, TypeError, AssertionError, AttributeError) as error:
        raise Problem(
            f"this Triton does not know the target {target}: {error or type(error).__name__}",
            "targets are written cuda:90, hip:gfx942",
        ) from None
    try:
        return backend, dataclasses.replace(default, **options_of(options))
    except (TypeError, ValueError, AssertionError, FileNotFoundError) as error:
        raise Problem(
            f"this Triton does not take these options for {target}: {error}",
            "resume with the version of Triton that recorded them; `tracing show RUN` names it",
        ) from None


def _language(name: str) -> Language:
    try:
        return Language[name.upper()]
    except KeyError:
        raise Problem(
            f"this Triton does not compile the language {name}", "known are triton and gluon"
        ) from None


def _module(text: str, backend: Any) -> Any:
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", prefix=_PREFIX, suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def _source(point: ResumePoint, backend: Any, begin: int, errors: _Errors) -> Any:
    # the input of the stage whose passes begin with `begin`
    try:
        module = _module(point.ir, backend)
    except RuntimeError as error:
        raise Problem(
            f"the IR does not parse: {errors() or error}", "correct it there, and repeat the command"
        ) from None
    set_block_locations(module, point.locations)
    if point.index != begin:
        module.str_nodebug = _entered(point, module.str_nodebug)
    return module


def _passes_before(backend: Any, stages: Mapping[str, Any], names: list[str], metadata: Any) -> int:
    # number of passes of the earlier stages, which are executed without any pass
    steps = Steps(first=sys.maxsize)
    module: Any = _module(_KERNEL, backend)
    for name in names:
        module = steps.stage(name, stages[name], module, dict(metadata))
    return steps.count


def _entered(point: ResumePoint, whole: Callable[[], str]) -> Callable[[], str]:
    # the stage's Python code reads the IR before its first pass once; later reads give the present IR
    def str_nodebug() -> str:
        if not sys._getframe(1).f_globals["__name__"].startswith(PACKAGE):
            return whole()
        if point.entered is None:
            raise Problem(
                f"the backend reads the IR that enters stage {point.stage}, and pass {point.index} is in its "
                "middle",
                "pass the IR before the stage's first pass, too",
            )
        return point.entered

    return str_nodebug


def _stage(
    steps: Steps, name: str, run: Callable[[Any, Any], Any], source: Any, metadata: Any, errors: _Errors
) -> Any:
    try:
        return steps.stage(name, run, source, metadata)
    except Problem:
        raise
    except Exception as error:  # a stage may raise anything: C++ exceptions, PTXASError, AssertionError
        at = steps.running
        where = f"pass {at.index}, {at.name}," if at else f"stage {name}"
        remedy = "the IR is not one that it takes: look at what was edited or left out before it"
        raise Problem(f"{where} failed: {errors() or errors_in(str(error)) or error}", remedy) from None


@dataclass(frozen=True, slots=True)
class _Errors:
    # the compiler's errors so far, with the lines of the IR as lines of the user's file

    collected: Callable[[], str]
    file: str

    def __call__(self) -> str:
        return _HERE.sub(lambda match: f"{self.file}:{match[1]}", errors_in(self.collected()))
