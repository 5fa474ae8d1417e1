"""Failures of Triton's compiler: frontend, stage or pass, and kernels that exceed the GPU's resources."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from tracing.compiler.pipeline import failed_stage
from tracing.errors import message, summary
from tracing.model import Failure
from tracing.record.failures.error_chain import ErrorChain
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.inductor.compile_errors import (
    CompilationError,
    JITFunction,
    OutOfResources,
    PTXASError,
    functions_in,
    kernel_in,
    stage_in,
)
from tracing.upstream.inductor.user_kernels import line_of_user

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_PTX_LINE = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)")
_REASON = re.compile(r"(?:error|fatal|Error)\s*:?\s*(.*)")


def frontend_failure(chain: ErrorChain) -> Failure | None:
    """The failure of a kernel that the frontend rejects, with the line of its source."""
    errors = [one for one in chain.errors if isinstance(one, CompilationError)]
    if not errors:
        return None
    innermost = errors[-1]  # of a helper that the kernel calls
    known = [function for frame in chain.innermost() for function in functions_in(frame)]
    if not isinstance(innermost.node, ast.AST) and known:
        return _refused_name(known[0], innermost)
    kernel = next((one for one in known if one.src == errors[0].src), None)
    sources = [(one, _with_source(one.src, known)) for one in reversed(errors)]
    own = (one for one in sources if not _is_of_triton(one[1]))  # not tl.flip, but the line that calls it
    located, function = next(own, sources[0])
    source, line, code = _code(located)
    first = innermost.__cause__ or innermost.__context__
    message = innermost.error_message or (f"{type(first).__name__}: {first}" if first else "")
    reason = summary(message or type(innermost).__name__)
    if located is not innermost:
        _, inner, inner_code = _code(innermost)
        reason += f" at {_position(sources[0][1], inner)}: {inner_code}"
    return Failure(
        "frontend",
        kernel.__name__ if kernel else _name_of(errors[0].src or ""),
        python=_position(function, line) if function else chain.line,
        code=code,
        reason=reason,
        source=source,
        line=line,
        file=_file(function),
    )


def _refused_name(function: Any, error: Any) -> Failure:
    # of a function whose name is no identifier of PTX: Triton gives the message in place of the source
    python, source, code = _position(function, 1), function.src, function.src.splitlines()[0]
    reason, file = summary(error.src or ""), _file(function)
    return Failure("frontend", function.__name__, reason, python, code, source=source, line=1, file=file)


def _code(error: Any) -> tuple[str, int, str]:
    # the source of the function that an error is of, the line in it, and the text of that line
    source, line = error.src or "", getattr(error.node, "lineno", 0)
    lines = source.splitlines()
    return source, line, lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _is_of_triton(function: Any) -> bool:
    return f"{getattr(function, '__module__', '')}.".startswith("triton.")


def resources_failure(chain: ErrorChain) -> Failure | None:
    """The failure of a kernel that needs more resources than the GPU has."""
    error = chain.last(OutOfResources) or chain.named("NoTritonConfigsError")
    if error is None:
        return None
    named = next((one for frame in chain.innermost() if (one := kernel_in(frame))), None)
    name, function = named or ("a kernel", None)
    source = function.src if isinstance(function, JITFunction) else ""
    return Failure(
        "launch",
        name,
        python=_position(function, 1) if source else chain.line,
        reason=summary(message(error)),
        source=source,
        line=1 if source else 0,
        file=_file(function) if source else "",
    )


def stage_failure(chain: ErrorChain) -> Failure | None:
    """The failure of a compile in a pass, or in a stage after the passes, such as ptxas."""
    for frame in chain.innermost():
        failed = failed_stage(frame)
        if failed is None:
            continue
        kernel, step = failed.compilation, failed.running
        text = frame.f_locals.get("source")
        ptx = text if failed.stage in ("cubin", "hsaco") and isinstance(text, str) else ""
        reason, line, python = _of_assembler(str(chain.last(PTXASError) or chain.errors[-1]), ptx)
        return Failure(
            "pass" if step else "stage",
            kernel.kernel_name,
            step=step.name if step else _assembler(failed.stage),
            stage=failed.stage,
            python=python or (_short(kernel.file) if kernel.file else chain.line),
            reason=reason,
            source=ptx,
            line=line,
            file="" if python or not kernel.file else kernel.file.rpartition(":")[0],
        )
    return _unrecorded_stage_failure(chain)


def _unrecorded_stage_failure(chain: ErrorChain) -> Failure | None:
    # of a compile whose passes are not recorded
    for frame in chain.innermost():
        if (known := stage_in(frame)) is not None and chain.last(CompilationError) is None:
            name, function, stage, text = known
            ptx = text if stage in ("cubin", "hsaco") else ""
            reason, line, python = _of_assembler(str(chain.last(PTXASError) or chain.errors[-1]), ptx)
            at = python or _position(function, 1)
            return Failure(
                "stage", name, reason, at, step=_assembler(stage), stage=stage, source=ptx, line=line
            )
    return None


def _assembler(stage: str) -> str:
    # the program that runs in a stage, as messages name it
    return "ptxas" if stage == "cubin" else stage


def _of_assembler(message: str, ptx: str) -> tuple[str, int, str]:
    # its message, the line of the PTX, and the Python line of that PTX line
    first = _PTX_LINE.search(message) if ptx else None
    if first is None:
        reasons = [match[1] for line in message.splitlines() if (match := _REASON.search(line)) and match[1]]
        reasons = [*(match[2].strip() for match in _PTX_LINE.finditer(message)), *reasons]
        return summary(reasons[0] if reasons else message), 0, ""
    line = int(first[1])
    files = dict(_FILE.findall(ptx))
    for text in reversed(ptx.splitlines()[:line]):
        if at := _LOC.match(text):
            file = files.get(at[1])
            return first[2].strip(), line, f"{Path(file).name}:{at[2]}" if file else ""
    return first[2].strip(), line, ""


def _with_source(source: str | None, known: list[Any]) -> Any:
    # the function, or a helper in the globals of one, or in the modules there
    seen: list[Any] = []
    pending = list(known)
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.append(one)
        if one.src == source:
            return one
        members = list(one.fn.__globals__.values())
        name = _name_of(source or "")
        members += [getattr(module, name, None) for module in members if inspect.ismodule(module)]
        members += inspect.getclosurevars(one.fn).nonlocals.values()
        pending += [member for member in members if isinstance(member, JITFunction) and member not in seen]
    return None


def _name_of(source: str) -> str:
    match = re.search(r"def (\w+)", source)
    return match[1] if match else "a kernel"


def _file(function: Any) -> str:
    # absolute, or "" if its source is not in a file
    path = Path(_line(function, 1)[0]) if function else Path()
    return str(path.absolute()) if path.is_file() else ""


def _position(function: Any, line: int) -> str:
    file, number = _line(function, line)
    return f"{Path(file).name}:{number}"


def _line(function: Any, line: int) -> tuple[str, int]:
    # line -- of the function's source, which begins with `def`; of a copy in generated code the user's line
    lines, start = inspect.getsourcelines(function.fn)
    first = next((n for n, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)
    file, number = inspect.getsourcefile(function.fn) or "", start + first + line - 1
    user = line_of_user(file, number) if is_generated(file) else None
    return user or (file, number)


def _short(position: str) -> str:
    path, _, line = position.rpartition(":")
    return f"{Path(path).name}:{line}"
