"""Parse triton-opt's command line: `FILE -pass="option=value" --pass-pipeline=... -o FILE`.

Accepts one dash or two, and flags and passes in any order; an option that is no flag here is a pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracing.compiler.opt.pipeline_text import PassText, options_in, passes_in
from tracing.compiler.opt.run import OptSettings
from tracing.errors import Problem

_FLAGS = {  # triton-opt's flag -> field of Settings
    "split-input-file": "split_input_file",
    "verify-diagnostics": "verify_diagnostics",
    "allow-unregistered-dialect": "allow_unregistered_dialect",
    "mlir-print-debuginfo": "print_debuginfo",
    "mlir-print-ir-before-all": "print_before_all",
    "mlir-print-ir-after-all": "print_after_all",
    "mlir-print-ir-after-change": "print_after_change",
    "mlir-print-ir-after-failure": "print_after_failure",
    "mlir-pass-pipeline-local-reproducer": "local_reproducer",
    "mlir-pass-statistics": "statistics",
    "mlir-timing": "timing",
    "debug": "debug",
    "run-reproducer": "run_reproducer",
    "dump-pass-pipeline": "dump_pass_pipeline",
}
_PRINTER = (  # flags and options with a value that MLIR's own printer reads
    "mlir-print-local-scope",
    "mlir-print-op-generic",
    "mlir-use-nameloc-as-prefix",
    "mlir-pretty-debuginfo",
    "mlir-print-assume-verified",
    "mlir-print-skip-regions",
    "mlir-print-unique-ssa-ids",
    "mlir-print-value-users",
    "mlir-elide-elementsattrs-if-larger",
    "mlir-elide-resource-strings-if-larger",
    "mlir-print-elementsattrs-with-hex-if-larger",
)
# accepted, because it is the behaviour here anyway
_NOTHING = ("mlir-disable-threading", "mlir-print-ir-module-scope")
_PASSES = ("mlir-print-ir-before", "mlir-print-ir-after")  # with names of passes
_REPRODUCER = "mlir-pass-pipeline-crash-reproducer"
_WITH_VALUE = ("o", "pass-pipeline", "debug-only", _REPRODUCER, *_PASSES)
_OWN = ("list-passes", "stand-in")
# options of triton-opt that are not supported here; neither are MLIR's others, which begin with "mlir-"
_ELSEWHERE = (
    "emit-bytecode", "emit-bytecode-version", "irdl-file", "load-dialect-plugin", "load-pass-plugin",
    "log-actions-to", "log-mlir-actions-filter", "no-implicit-module", "profile-actions-to", "show-dialects",
    "verify-roundtrip", "list-passes-only", "color", "help", "help-list", "help-hidden", "version",
)  # fmt: skip
_FALSE = ("0", "false", "False", "FALSE")


@dataclass(frozen=True, slots=True)
class OptCommand:
    """One call of `tracing opt`."""

    file: str  # "-": standard input
    output: str  # "-": standard output
    settings: OptSettings
    list_passes: bool = False
    stand_in: bool = False  # True: never run a real triton-opt


def command(arguments: Sequence[str]) -> OptCommand:
    """Parse a command line; raises Problem for unsupported options of triton-opt, and for two files."""
    files: list[str] = []
    values: dict[str, str] = {}  # counts every given flag
    printer: list[str] = []
    passes: list[PassText] = []
    for name, value in flag_words(arguments, _WITH_VALUE):
        if name == "":
            files.append(value)
        elif name in _WITH_VALUE:
            values[name] = value
            passes += passes_in(value) if name == "pass-pipeline" else ()
        elif name in _PRINTER:
            printer.append(f"-{name}={value}" if value else f"-{name}")
        elif name == "verify-each":
            values[name] = "0" if value in _FALSE else "1"
        elif name in _FLAGS or name in _OWN or name in _NOTHING:
            values[name] = value
        elif name in _ELSEWHERE or name.startswith("mlir-"):
            raise Problem(
                f"the option --{name} is not supported here", "`make triton` builds triton-opt itself"
            )
        else:
            passes.append(PassText(name, options_in(value)))
    if len(files) > 1:
        raise Problem(f"one file is read, not {len(files)}: {' '.join(files)}", "triton-opt takes one too")
    # flags of Triton's bindings override those of the printer
    if printer and "mlir-print-debuginfo" in values:
        del values["mlir-print-debuginfo"]
        printer.append("-mlir-print-debuginfo")
    settings = OptSettings(
        tuple(passes),
        printer=tuple(printer),
        only_expected=values.get("verify-diagnostics") == "only-expected",
        debug_only=values.get("debug-only", ""),
        print_before=_names(values, "mlir-print-ir-before"),
        print_after=_names(values, "mlir-print-ir-after"),
        crash_reproducer=values.get(_REPRODUCER, ""),
        verify_each=values.get("verify-each") != "0",
        **{field: name in values for name, field in _FLAGS.items()},
    )
    return OptCommand(
        file=files[0] if files else "-",
        output=values.get("o", "-"),
        settings=settings,
        list_passes="list-passes" in values,
        stand_in="stand-in" in values,
    )


def _names(values: Mapping[str, str], flag: str) -> tuple[str, ...]:
    return tuple(filter(None, values.get(flag, "").split(",")))


def flag_words(arguments: Sequence[str], with_value: Collection[str]) -> Iterator[tuple[str, str]]:
    """The (name, value) of each flag, and ("", argument) of each other argument.

    with_value -- flags whose value may be the next argument

    Raises Problem if there is none.
    """
    rest = iter(arguments)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            yield "", word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if name in with_value and not equals:
            value = next(rest, "")
            if not value:
                raise Problem(f"-{name} needs a value", f"write -{name}=VALUE")
        yield name, value
