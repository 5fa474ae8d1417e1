"""MLIR text through passes of the installed Triton: what `triton-opt` does, by way of the Python bindings.

The compiler runs in a child process: LLVM's options stay what they are in this one, and a pass that aborts
leaves its name and last words. Lines in diagnostics are those of the file, also behind a `// -----`, where
triton-opt counts from the split on.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir, llvm

from tracing.compiler import printing
from tracing.compiler.adders import adder, new_context
from tracing.compiler.child import in_child
from tracing.compiler.diagnostics import diagnostics, unmet, without_added
from tracing.compiler.pipeline_text import PassText, reproducer_passes
from tracing.environment import show_diagnostics
from tracing.errors import Problem

_SPLIT = re.compile(r"^// -----[ \t]*\n", re.MULTILINE)
_DAY = 86400.0  # seconds: a pass is stopped by its user
_MODULE = ("any", "builtin.module")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is done to a file, in triton-opt's terms."""

    passes: tuple[PassText, ...] = ()
    split_input_file: bool = False
    verify_diagnostics: bool = False
    only_expected: bool = False  # of diagnostics that nothing expects, nothing is said
    allow_unregistered_dialect: bool = False
    print_debuginfo: bool = False
    print_before_all: bool = False
    print_after_all: bool = False
    printer: tuple[str, ...] = ()  # LLVM's options of the printer, "-mlir-print-local-scope"
    debug: bool = False
    debug_only: str = ""
    run_reproducer: bool = False  # the passes that the file's reproducer names, before `passes`
    dump_pass_pipeline: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file."""

    text: str  # the modules that came through
    stderr: str  # the compiler's diagnostics, and dumps that were asked for
    passed: bool


def optimise(text: str, name: str, settings: Settings) -> Outcome:
    """Run passes over MLIR text.

    text -- one module, or several with `// -----` between them if `settings` split it
    name -- of the file, for diagnostics and locations

    Cost: a fork, and the passes. Raises Problem for a pass or an option that this Triton does not have,
    before anything runs.
    """
    if settings.run_reproducer:
        settings = replace(settings, passes=(*reproducer_passes(text), *settings.passes))
    manager = ir.pass_manager(new_context())
    for one in settings.passes:
        _check(one, manager)
    if settings.printer or settings.allow_unregistered_dialect:
        printing.require()
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        chunks = list(_chunks(text, Path(folder), settings.split_input_file))
        ended = in_child(lambda: _all(chunks, Path(folder), settings), _DAY)
        said = _renamed(ended.stderr, folder, name)
        if ended.result is None:
            return Outcome("", f"{said}{name}: the compiler failed: {ended.failure}\n", False)
        output = _renamed("// -----\n".join(filter(None, ended.result)), folder, name)
    stderr, dump = without_added(said), _pipeline(manager, settings)
    if not settings.verify_diagnostics:
        return Outcome(output, dump + stderr, None not in ended.result)
    missed = unmet(text, diagnostics(stderr, name), name, surplus=not settings.only_expected)
    return Outcome(output, dump + "".join(f"{line}\n" for line in missed), not missed)


def flags(passes: Sequence[PassText]) -> str:
    """Passes as triton-opt's command line has them, with the options that a compilation chooses."""
    return " ".join(adder(one.name).flag(one.options) for one in passes)


def _check(one: PassText, manager: ir.pass_manager) -> None:
    for anchor in one.anchors:
        if anchor not in _MODULE and not anchor.endswith(".func"):
            raise Problem(
                f"{one.name} is nested in {anchor}: Triton's Python bindings cannot run it there",
                "build Triton (`make triton`): its own triton-opt can nest it",
            )
    adder(one.name).add(manager, one.options)


def _pipeline(manager: ir.pass_manager, settings: Settings) -> str:
    if not settings.dump_pass_pipeline:
        return ""
    return f"Pass Manager with {len(settings.passes)} passes:\n{manager.get_pipeline_str()}\n"


def _chunks(text: str, folder: Path, split: bool) -> Iterator[Path]:
    # every part in a file of its own, below as many empty lines as stand before it
    parts = _SPLIT.split(text) if split else [text]
    line = 0
    for number, part in enumerate(parts):
        path = folder / f"{number}.mlir"
        path.write_text("\n" * line + part)
        line += part.count("\n") + 1
        yield path


def _renamed(text: str, folder: str, name: str) -> str:
    return re.sub(re.escape(folder) + r"/\d+\.mlir", lambda _: name, text)


def _all(chunks: Sequence[Path], folder: Path, settings: Settings) -> list[str | None]:
    # in the child; None: a chunk that failed
    show_diagnostics(folder / "reproducer.mlir", settings.debug_only, debug=settings.debug)
    printing.set_options(settings.printer)
    return [_one(path, settings) for path in chunks]


def _one(path: Path, settings: Settings) -> str | None:
    context = new_context()
    context.printOpOnDiagnostic(not settings.verify_diagnostics)
    if settings.allow_unregistered_dialect:
        printing.allow_unregistered_dialects(context)
    sources = llvm.source_mgr()  # the handler does not keep it alive
    handler = ir.source_mgr_diag(sources, context)
    try:
        module = ir.parse_mlir_module(str(path), context)
        module.context = context  # the module does not keep it alive
        for one in settings.passes:
            _run(one, module, settings)
        return _printed(module, settings)
    except RuntimeError:  # the compiler has said why
        return None
    finally:
        del handler  # before the context that it serves


def _run(one: PassText, module: Any, settings: Settings) -> None:
    manager = ir.pass_manager(module.context)
    adder(one.name).add(manager, one.options)
    if settings.print_before_all:
        _dump("Before", one.name, _printed(module, settings))
    manager.run(module, one.name)
    if settings.print_after_all:
        _dump("After", one.name, _printed(module, settings))


def _printed(module: Any, settings: Settings) -> str:
    text: str = module.str() if settings.print_debuginfo else module.str_nodebug()
    return text if text.endswith("\n") else f"{text}\n"


def _dump(when: str, name: str, text: str) -> None:
    sys.stderr.write(f"// -----// IR Dump {when} {name} //----- //\n{text}\n\n")
    sys.stderr.flush()
