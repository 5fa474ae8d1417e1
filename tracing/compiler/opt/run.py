"""Run MLIR text through passes of the installed Triton, like `triton-opt`, through its Python bindings.

The compiler runs in a child process, so LLVM's options do not change in this one, and a pass that aborts
leaves its name and last output. Line numbers in diagnostics are those of the file; triton-opt restarts
them after each `// -----`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracing.compiler.adders import adder, new_context
from tracing.compiler.child import in_child
from tracing.compiler.opt import printing
from tracing.compiler.opt.diagnostics import diagnostics, unmet, without_added
from tracing.compiler.opt.pipeline_text import PassText, reproducer_passes
from tracing.environment import show_diagnostics
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import ir, llvm

_SPLIT = re.compile(r"^// -----[ \t]*\n", re.MULTILINE)
_DAY = 86400.0  # seconds: a pass is stopped by its user
_MODULE = ("any", "builtin.module")


@dataclass(frozen=True, slots=True)
class OptSettings:
    """The options of a run, in triton-opt's terms."""

    passes: tuple[PassText, ...] = ()
    split_input_file: bool = False
    verify_diagnostics: bool = False
    only_expected: bool = False  # unexpected diagnostics are not reported
    allow_unregistered_dialect: bool = False
    print_debuginfo: bool = False
    print_before_all: bool = False
    print_after_all: bool = False
    print_before: tuple[str, ...] = ()  # names of passes
    print_after: tuple[str, ...] = ()
    print_after_change: bool = False  # prints after a pass only if the pass changed something
    print_after_failure: bool = False
    verify_each: bool = True  # the IR is verified after each pass
    timing: bool = False
    statistics: bool = False
    crash_reproducer: str = ""  # file that gets the IR and the passes of a chunk that fails
    local_reproducer: bool = False  # ... only the failing pass
    printer: tuple[str, ...] = ()  # LLVM's options of the printer, "-mlir-print-local-scope"
    debug: bool = False
    debug_only: str = ""
    run_reproducer: bool = False  # the passes that the file's reproducer names, before `passes`
    dump_pass_pipeline: bool = False

    @property
    def prints_between(self) -> bool:
        """True if IR is printed around passes."""
        every = self.print_before_all or self.print_after_all or self.print_after_failure
        return every or bool(self.print_before or self.print_after)


@dataclass(frozen=True, slots=True)
class OptOutcome:
    """The result of a run on a file."""

    text: str  # the modules without an error
    stderr: str  # the compiler's diagnostics, and dumps that were asked for
    passed: bool


def optimise(text: str, name: str, settings: OptSettings) -> OptOutcome:
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
    _require_one_run(settings)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        chunks = list(_chunks(text, Path(folder), settings.split_input_file))
        ended = in_child(lambda: _all(chunks, Path(folder), settings), _DAY)
        printed = _renamed(ended.stderr, folder, name)
        if settings.crash_reproducer and Path(settings.crash_reproducer).exists():
            printed += f"{name}: error: a reproducer has been generated in `{settings.crash_reproducer}`\n"
        if ended.result is None:
            return OptOutcome("", f"{printed}{name}: the compiler failed: {ended.failure}\n", False)
        output = _renamed("// -----\n".join(filter(None, ended.result)), folder, name)
    stderr, dump = without_added(printed), _pipeline(manager, settings)
    if not settings.verify_diagnostics:
        return OptOutcome(output, dump + stderr, None not in ended.result)
    missed = unmet(text, diagnostics(stderr, name), name, surplus=not settings.only_expected)
    return OptOutcome(output, dump + "".join(f"{line}\n" for line in missed), not missed)


def flags(passes: Sequence[PassText]) -> str:
    """Passes in the syntax of triton-opt's command line, with the options of a compilation."""
    return " ".join(adder(one.name).flag(one.options) for one in passes)


def _require_one_run(settings: OptSettings) -> None:
    # one pass manager, or one for each pass if something must happen between passes
    between = [
        flag
        for flag, given in (
            ("-mlir-print-ir-…", settings.prints_between),
            ("-mlir-pass-pipeline-local-reproducer", settings.local_reproducer),
        )
        if given
    ]
    if between and (settings.timing or settings.statistics):
        raise Problem(
            f"-mlir-timing and -mlir-pass-statistics are of all passes together, {between[0]} of each",
            "ask for one at a time",
        )


def _check(one: PassText, manager: ir.pass_manager) -> None:
    for anchor in one.anchors:
        if anchor not in _MODULE and not anchor.endswith(".func"):
            raise Problem(
                f"{one.name} is nested in {anchor}: Triton's Python bindings cannot run it there",
                "build Triton (`make triton`): its own triton-opt can nest it",
            )
    adder(one.name).add(manager, one.options)


def _pipeline(manager: ir.pass_manager, settings: OptSettings) -> str:
    if not settings.dump_pass_pipeline:
        return ""
    return f"Pass Manager with {len(settings.passes)} passes:\n{manager.get_pipeline_str()}\n"


def _chunks(text: str, folder: Path, split: bool) -> Iterator[Path]:
    # every part in a file of its own, after as many empty lines as there are lines before it
    parts = _SPLIT.split(text) if split else [text]
    line = 0
    for number, part in enumerate(parts):
        path = folder / f"{number}.mlir"
        path.write_text("\n" * line + part)
        line += part.count("\n") + 1
        yield path


def _renamed(text: str, folder: str, name: str) -> str:
    return re.sub(re.escape(folder) + r"/\d+\.mlir", lambda _: name, text)


def _all(chunks: Sequence[Path], folder: Path, settings: OptSettings) -> list[str | None]:
    # in the child; None: a chunk that failed
    show_diagnostics(folder / "reproducer.mlir", settings.debug_only, debug=settings.debug)
    printing.set_options(settings.printer)
    return [_one(path, settings) for path in chunks]


def _one(path: Path, settings: OptSettings) -> str | None:
    context = new_context()
    context.printOpOnDiagnostic(not settings.verify_diagnostics)
    if settings.allow_unregistered_dialect:
        printing.allow_unregistered_dialects(context)
    sources = llvm.source_mgr()  # the handler does not keep it alive
    handler = ir.source_mgr_diag(sources, context)
    try:
        module = ir.parse_mlir_module(str(path), context)
        module.context = context  # the module does not keep it alive
        if settings.timing or settings.statistics:
            _run(settings.passes, module, settings)
        else:
            _run_each(module, settings)
        _discard_reproducer(settings)
        return _printed(module, settings)
    except RuntimeError:  # the compiler has printed the reason
        return None
    finally:
        del handler  # freed before the context that it serves


def _run_each(module: Any, settings: OptSettings) -> None:
    if settings.crash_reproducer and not settings.local_reproducer:
        _write_reproducer(settings.passes, module, settings)
    for one in settings.passes:
        if settings.crash_reproducer and settings.local_reproducer:
            _write_reproducer([one], module, settings)
        if settings.print_before_all or one.name in settings.print_before:
            _dump(f"Before {one.name}", _printed(module, settings))
        before = _printed(module, settings) if settings.print_after_change else ""
        try:
            _run([one], module, settings)
        except RuntimeError:
            if settings.print_after_failure:
                _dump(f"After {one.name} Failed", _printed(module, settings))
            raise
        wanted = settings.print_after_all or one.name in settings.print_after
        if wanted and not settings.print_after_failure and before != (after := _printed(module, settings)):
            _dump(f"After {one.name}", after)


def _run(passes: Sequence[PassText], module: Any, settings: OptSettings) -> None:
    manager = _manager(passes, module.context)
    if not settings.verify_each:
        printing.verify_nothing(manager)
    if settings.timing:
        printing.report_times(manager)
    if settings.statistics:
        printing.report_statistics(manager)
    manager.run(module, passes[-1].name if passes else "")


def _manager(passes: Sequence[PassText], context: Any) -> Any:
    manager = ir.pass_manager(context)
    for one in passes:
        adder(one.name).add(manager, one.options)
    return manager


def _write_reproducer(passes: Sequence[PassText], module: Any, settings: OptSettings) -> None:
    # on disk before the passes run: one of them may take the process down
    pipeline = _manager(passes, module.context).get_pipeline_str().replace('"', '\\"')
    resource = (
        f'pipeline: "{pipeline}", disable_threading: true, verify_each: {str(settings.verify_each).lower()}'
    )
    resources = f"{{-#\n  external_resources: {{ mlir_reproducer: {{ {resource} }} }}\n#-}}\n"
    Path(settings.crash_reproducer).write_text(f"{_printed(module, settings)}\n{resources}")


def _discard_reproducer(settings: OptSettings) -> None:
    if settings.crash_reproducer:
        Path(settings.crash_reproducer).unlink(missing_ok=True)


def _printed(module: Any, settings: OptSettings) -> str:
    text: str = module.str() if settings.print_debuginfo else module.str_nodebug()
    return text if text.endswith("\n") else f"{text}\n"


def _dump(when: str, text: str) -> None:
    sys.stderr.write(f"// -----// IR Dump {when} //----- //\n{text}\n\n")
    sys.stderr.flush()
