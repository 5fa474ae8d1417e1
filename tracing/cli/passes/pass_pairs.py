"""`tracing passes RUN RUN`: what two compilers, or one with other options, did to the same kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import typer

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compilation_pairs import paired, partner_of
from tracing.analyze.passes.ir_text import canonical, plain
from tracing.analyze.passes.pass_pairs import PassPair, PassPairs
from tracing.analyze.passes.pass_table import label
from tracing.analyze.passes.ptx_text import without_debug
from tracing.analyze.passes.source_map import artefacts
from tracing.cli.app import err, out
from tracing.cli.passes.derived import open_derived
from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.report import pass_pairs as report
from tracing.report.passes_json import pass_pairs_json

_BINARY = ("cubin", "hsaco")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about two runs."""

    kernels: Sequence[str]  # none: all; one: of both runs; two: one of each
    which: str | None  # the pass after which the IR is compared
    stage: str | None
    changed: bool

    def wants(self, record: PassRecord) -> bool:
        """Whether a pass is of the stage, and changed the IR if that is asked for."""
        return self.stage in (None, record.stage) and (record.changed or not self.changed)


def print_pairs(a: str, b: str, runs: Path, asked: Asked) -> None:
    """Print where the IR of the kernels of two runs parts; ends with exit status 1 if it does."""
    run_a, run_b = _opened(a, runs), _opened(b, runs)
    pairs = _kernel_pairs(run_a, run_b, asked)
    if len(pairs) > 1:
        raise typer.Exit(_print_all(run_a, run_b, pairs))
    raise typer.Exit(_print_one(run_a, run_b, *pairs[0], asked))


def print_pairs_json(a: str, b: str, runs: Path, asked: Asked) -> int:
    """Print as JSON where the IR of the kernels of two runs first differs; the exit status."""
    run_a, run_b = _opened(a, runs), _opened(b, runs)
    kernels = _kernel_pairs(run_a, run_b, asked)
    rows = [(one, other, _pairs(run_a, run_b, one, other)) for one, other in kernels]
    answer = pass_pairs_json((run_a, run_b), rows)
    print(json.dumps(answer, indent=2))
    return int(answer["status"])


def _kernel_pairs(
    run_a: store.Run, run_b: store.Run, asked: Asked
) -> Sequence[tuple[Compilation, Compilation]]:
    if asked.kernels:
        return [_chosen(run_a, run_b, asked.kernels)]
    matched = paired(analysis.compilations(run_a), analysis.compilations(run_b))
    if not matched.pairs:
        raise Problem(
            f"{run_a.path} and {run_b.path} have no kernel in common",
            "name one of each: --kernel KERNEL_OF_A --kernel KERNEL_OF_B",
        )
    return matched.pairs


def _opened(name: str, runs: Path) -> store.Run:
    run = store.open_run(name, runs)
    env = run.info.environment
    if run.underived() and env.triton != installed("triton"):
        torch, folder = env.torch.partition("+")[0], f".venv-{env.triton}"
        raise Problem(
            f"{run.path} has no IR between its passes yet: it was recorded with Triton {env.triton}, and "
            f"here is {installed('triton')}",
            f"derive it there, which it keeps: `make venv TORCH={torch} TRITON={env.triton} VENV={folder}`, "
            f"then `{folder}/bin/tracing passes {quote(str(run.path))}`; or record with `--ir during`",
        )
    return open_derived(name, runs)


def _chosen(run_a: store.Run, run_b: store.Run, kernels: Sequence[str]) -> tuple[Compilation, Compilation]:
    if len(kernels) > 2:
        raise Problem(f"two runs have one kernel each, not {len(kernels)}", "give --kernel once or twice")
    one = analysis.compilation(run_a, kernels[0])
    if len(kernels) == 2:
        return one, analysis.compilation(run_b, kernels[1])
    other = partner_of(one, analysis.compilations(run_b))
    if other is None:
        raise Problem(
            f"{run_b.path} has no kernel {one.kernel_name}",
            f"name one of it with a second --kernel; `tracing passes {quote(str(run_b.path))}` lists them",
        )
    return one, other


def _pairs(run_a: store.Run, run_b: store.Run, one: Compilation, other: Compilation) -> PassPairs:
    of_a, of_b = analysis.passes_of(run_a, one), analysis.passes_of(run_b, other)
    for run, passes, kernel in ((run_a, of_a, one), (run_b, of_b, other)):
        if not passes:
            raise Problem(f"{run.path} has no passes of {kernel.kernel_name}", "record it with a fresh cache")
    return PassPairs(of_a, of_b, run_a.text, run_b.text)


def _print_all(run_a: store.Run, run_b: store.Run, pairs: Sequence[tuple[Compilation, Compilation]]) -> int:
    rows = []
    known = analysis.compilations(run_a)
    with err.status(f"comparing the passes of {len(pairs)} kernels") as status:
        for number, (one, other) in enumerate(pairs, 1):
            status.update(f"comparing the passes of kernel {number} of {len(pairs)}")
            rows.append((label(known, one), one, other, _pairs(run_a, run_b, one, other)))
    for line in report.kernels_table(rows):
        out.print(line)
    both = f"{quote(str(run_a.path))} {quote(str(run_b.path))}"
    out.print(f"one kernel: tracing passes {both} --kernel KERNEL", markup=False)
    return int(any(_differs(pairs) for *_, pairs in rows))


def _differs(pairs: PassPairs) -> bool:
    return not pairs.entry_equal or pairs.parting() is not None


def _print_one(run_a: store.Run, run_b: store.Run, one: Compilation, other: Compilation, asked: Asked) -> int:
    with err.status(f"comparing the passes of {one.kernel_name}"):
        pairs = _pairs(run_a, run_b, one, other)
    versions = (run_a.info.environment.triton, run_b.info.environment.triton)
    lines = [*report.pair_heading(one, other, versions)]
    if asked.which is not None:
        lines += report.pair_diff_text(pairs, _wanted(pairs, asked.which, asked.stage))
    else:
        lines += report.pairs_text(pairs, [row for row in pairs.pairs if _shown(row, asked)])
        lines += report.verdict_text(pairs)
        lines += report.attributes_text(pairs)
        lines += report.artefacts_text(_equal_artefacts(run_a, run_b, one, other))
        if (first := pairs.parting()) is not None:
            lines += report.pair_diff_text(pairs, first)
    for line in lines:
        out.print(line)
    return int(_differs(pairs))


def _shown(row: PassPair, asked: Asked) -> bool:
    return asked.stage in (None, row.stage) and (row.changed or row.state != "equal" or not asked.changed)


def _wanted(pairs: PassPairs, which: str, stage: str | None) -> PassPair:
    # named as in a; a pass that only b has by its name
    of_a = [row.a for row in pairs.pairs if row.a is not None]
    of_b = [row.b for row in pairs.pairs if row.a is None and row.b is not None]
    among = of_a if which.isdecimal() or any(one.name == which.partition("#")[0] for one in of_a) else of_b
    wanted = analysis.find_pass(among or of_a, which, stage)
    return next(row for row in pairs.pairs if wanted in (row.a, row.b))


def _equal_artefacts(
    run_a: store.Run, run_b: store.Run, one: Compilation, other: Compilation
) -> Mapping[str, bool]:
    a, b = artefacts(run_a, one), artefacts(run_b, other)
    return {stage: _equal(run_a, run_b, stage, a[stage], b[stage]) for stage in a if stage in b}


def _equal(run_a: store.Run, run_b: store.Run, stage: str, a: str, b: str) -> bool:
    if a == b or stage in _BINARY:
        return a == b
    one, other = run_a.text(a), run_b.text(b)
    if stage in ("ttir", "ttgir"):
        modules = plain(one), plain(other)
        return (
            canonical(modules[0]) == canonical(modules[1]) and modules[0].attributes == modules[1].attributes
        )
    return without_debug(one) == without_debug(other)
