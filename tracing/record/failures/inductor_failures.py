"""Failures of Inductor: a graph pass, a lowering, a compile worker, a C++ compiler, and generated code."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from types import FrameType

import msgspec
import torch

from tracing.errors import summary
from tracing.model import Failure
from tracing.program.user_code import is_users
from tracing.record.failures.error_chain import ErrorChain
from tracing.upstream.inductor.code import is_generated, program_lines
from tracing.upstream.inductor.compile_errors import CppCompileError, SubprocException
from tracing.upstream.inductor.graph_pass_observer import applied_pass
from tracing.upstream.inductor.user_kernels import line_of_user
from tracing.upstream.torch.autograd import BACKWARD_FUNCTION
from tracing.upstream.torch.custom_operators import files_of_operator

_TRACE_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_CPP_ERROR = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\.run\(|\b(torch\.ops\.[\w.]+|extern_kernels\.\w+|\w+)\(")
_NODES = re.compile(r"Source Nodes: (\[[^\]]*\])")
_FRONTEND_TEXT = re.compile(r"CompilationError: at (\d+):\d+:\n(.*?)\n *\^\n(.*)", re.DOTALL)


def operator_failure(chain: ErrorChain) -> Failure | None:
    """The failure of an operator of the program that torch.library or its own code raises, and that it names.

    Such an error can come from another node than the operator's: from the backward of the whole graph.
    """
    first = chain.errors[-1]
    if not raised_by_operator(chain):
        return None
    graphs = (
        one.graph
        for frame in chain.innermost()
        for one in frame.f_locals.values()
        # torch 2.15 empties the graph that failed
        if isinstance(one, (torch.fx.GraphModule, torch.fx.Tracer)) and hasattr(one, "graph")
    )
    for node in (node for graph in graphs for node in graph.nodes if node.op == "call_function"):
        name = str(node.target)
        if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", str(first)):
            return _of_operator(node, chain, f"{type(first).__name__}: {first}")
    return None


def raised_by_operator(chain: ErrorChain) -> bool:
    """True if torch.library, or the program's code that it called, raised the error during a compile."""
    files = files_of_operator(chain.errors[-1])
    if any(is_generated(frame.f_code.co_filename) for frame, _ in chain.frames):
        return False  # generated code calls the operator, perhaps with other arguments than eager
    return bool(files) and (Path(files[-1]).parent == Path(files[0]).parent or is_users(files[-1]))


def graph_pass_failure(chain: ErrorChain) -> Failure | None:
    """The failure of a graph pass, also of the user's, with the FX node at which it raises.

    Its line is that of the user's code, if the pass is the user's, and else that of the node.
    """
    calls = [(at, one) for at, (frame, _) in enumerate(chain.frames) if (one := applied_pass(frame))]
    if not calls:
        return None
    at, applied = calls[-1]  # the innermost
    inside = chain.frames[at:]
    first = chain.errors[-1]
    node = next((node for frame, _ in reversed(inside) if (node := _node_of(frame)) is not None), None)
    users = ((frame.f_code.co_filename, line) for frame, line in reversed(inside))
    file, line = next((one for one in users if is_users(one[0])), ("", 0))
    trace = node.stack_trace or "" if node is not None else ""
    return Failure(
        "graph pass",
        ", ".join(filter(None, applied)),
        step=node.name if node is not None else "",
        python=f"{Path(file).name}:{line}" if file else _python_line(trace) or chain.line,
        code=linecache.getline(file, line).strip() if file else _python_code(trace),
        reason=summary(f"{type(first).__name__}: {first}"),
        file=file,
    )


def node_failure(chain: ErrorChain) -> Failure | None:
    """The failure of an operator in a graph: its lowering, decomposition or fake tensor raises.

    None if a backward pass raises: a frame around it still has the node of the forward that it traced last.
    """
    lowering = chain.named("LoweringException")
    for frame, _ in reversed(chain.frames):
        if frame.f_code.co_name == BACKWARD_FUNCTION:
            return None
        node = _node_of(frame)
        if node is None:
            continue
        first = chain.errors[-1]
        reason = str(lowering) if lowering and not str(first) else f"{type(first).__name__}: {first}"
        failure = _of_operator(node, chain, reason)
        return msgspec.structs.replace(failure, kind="lowering") if lowering else failure
    return None


def _node_of(frame: FrameType) -> torch.fx.Node | None:
    # that a frame handles, if it computes something
    node = next((frame.f_locals[name] for name in ("n", "node") if name in frame.f_locals), None)
    computes = isinstance(node, torch.fx.Node) and node.op not in ("placeholder", "output")
    return node if computes else None


def _of_operator(node: torch.fx.Node, chain: ErrorChain, reason: str) -> Failure:
    return Failure(
        "operator",
        str(node.target),
        step=node.name,
        python=_python_line(node.stack_trace or "") or chain.line,
        code=_python_code(node.stack_trace or ""),
        reason=summary(reason),
    )


def worker_failure(chain: ErrorChain) -> Failure | None:
    """The failure of a compile worker, whose error is available as text."""
    error = chain.last(SubprocException)
    if error is None:
        return None
    text = str(error)
    name = re.search(r"^Name=(\S+)", text, re.MULTILINE)
    frontend = _FRONTEND_TEXT.search(text)
    if frontend:
        shown = frontend[2].splitlines()
        return Failure(
            "worker",
            name[1] if name else "a kernel",
            code=shown[-1].strip() if shown else "",
            python=chain.line,
            reason=summary(frontend[3]),
            source=frontend[2],
            line=len(shown),
        )
    raised = [line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
    reason = raised[-1] if raised else text.strip().splitlines()[-1]
    return Failure("worker", name[1] if name else "a kernel", python=chain.line, reason=summary(reason))


def cpp_failure(chain: ErrorChain) -> Failure | None:
    """The failure of generated C++ that the C++ compiler rejects."""
    error = chain.last(CppCompileError)
    if error is None:
        return None
    first = _CPP_ERROR.search(error.output)
    file = Path(first[1]) if first else next((Path(one) for one in error.cmd if one.endswith(".cpp")), Path())
    source = file.read_text(errors="replace") if file.is_file() else ""
    line = int(first[2]) if first else 0
    kernels = re.findall(r"\bvoid\s+(\w+)\(", source)
    return Failure(
        "C++",
        kernels[-1] if kernels else file.name,
        python=chain.line,
        code=_line_of(source, line).strip(),
        reason=summary(first[3] if first else error.output or str(error)),
        source=source,
        line=line,
    )


def generated_failure(chain: ErrorChain) -> Failure | None:
    """The failure of generated code that raises: a wrapper, or a kernel that the interpreter executes.

    Generated code also holds copies of the user's kernels, whose failures are of the kind "kernel".

    None if the exception comes from the user's code that it called: a launch hook, an operator.
    """
    where = _generated_line(chain)
    if where is None or _raised_by_user(chain.errors[-1]):
        return None
    path, line, function = where
    source = path.read_text(errors="replace")
    code = _line_of(source, line).strip()
    called = _CALLED.search(code)
    in_wrapper = _is_wrapper(function)
    first, copied = chain.errors[-1], _copied_line(path, line)
    return Failure(
        "kernel" if copied and not in_wrapper else "generated code",
        (called[1] or called[2] if called else code) if in_wrapper else _kernel(chain, path) or function,
        nodes=_nodes_above(source, line),
        python=copied or _program_line(chain, path, line) or chain.line,
        code=code,
        reason=summary(f"{type(first).__name__}: {first}"),
        source=source,
        line=line,
    )


def _is_wrapper(function: str) -> bool:
    return function in ("call", "<module>") or function.startswith("partition_")


def _kernel(chain: ErrorChain, path: Path) -> str:
    # the outermost function: a kernel may call others
    names = [frame.f_code.co_name for frame, _ in chain.frames if frame.f_code.co_filename == str(path)]
    return next((name for name in names if not _is_wrapper(name)), "")


def _raised_by_user(error: BaseException) -> bool:
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return bool(files) and is_users(files[-1]) and not is_generated(files[-1])


def _generated_line(chain: ErrorChain) -> tuple[Path, int, str] | None:
    # file, line and function of the innermost generated code; the line of the error if it is not Python
    for error in chain.errors:
        if isinstance(error, SyntaxError) and error.filename and is_generated(error.filename):
            return Path(error.filename), error.lineno or 0, "<module>"
    for frame, line in reversed(chain.frames):
        code = frame.f_code
        if is_generated(code.co_filename) and Path(code.co_filename).is_file():
            return Path(code.co_filename), line, code.co_name
    return None


def _copied_line(path: Path, line: int) -> str:
    # of a kernel of the user's that torch.compile has copied
    user = line_of_user(str(path), line)
    return f"{Path(user[0]).name}:{user[1]}" if user else ""


def _program_line(chain: ErrorChain, path: Path, line: int) -> str:
    # for a line of a kernel, the line of the wrapper that launches the kernel
    wrappers = [(frame.f_code.co_filename, at) for frame, at in reversed(chain.frames)]
    for file, at in [(str(path), line), *wrappers]:
        lines = program_lines(file, at) if is_generated(file) else []
        own = [(file, at) for file, at in lines if is_users(file)]
        if own:
            return f"{Path(own[0][0]).name}:{own[0][1]}"
    return ""


def origin(chain: ErrorChain) -> tuple[str, str]:
    """The nodes of the kernel that is being compiled, and the program line of the last node."""
    where = _generated_line(chain)
    nodes = _nodes_above(where[0].read_text(errors="replace"), where[1]) if where else ""
    names = nodes.strip("[]").split(", ")
    for frame in chain.innermost():
        for graph in (one for one in frame.f_locals.values() if isinstance(one, torch.fx.GraphModule)):
            traces = [one.stack_trace or "" for one in graph.graph.nodes if one.name in names]
            if lines := [line for trace in traces if (line := _python_line(trace))]:
                return nodes, lines[-1]
    return nodes, ""


def _nodes_above(source: str, line: int) -> str:
    # the operators that the generated lines above were made from, as Inductor writes them
    for text in reversed(source.splitlines()[:line]):
        if match := _NODES.search(text):
            return match[1]
        if text.startswith(("def ", "class ")):
            break
    return ""


def _line_of(source: str, line: int) -> str:
    lines = source.splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _users_lines(trace: str) -> Iterator[tuple[str, str]]:
    # position, and code, from the inside out
    lines = trace.splitlines()
    for at in reversed(range(len(lines))):
        match = _TRACE_LINE.search(lines[at])
        if match and is_users(match[1]):
            yield f"{Path(match[1]).name}:{match[2]}", lines[at + 1].strip() if at + 1 < len(lines) else ""


def _python_line(trace: str) -> str:
    return next((position for position, _ in _users_lines(trace)), "")


def _python_code(trace: str) -> str:
    return next((code for _, code in _users_lines(trace)), "")
