"""`tracing passes RUN RUN`: compare the passes of two compilers, or option sets, over equal kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rich.text import Text

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compared_compilations import ComparedCompilations, CompilationComparer
from tracing.analyze.passes.compilation_pairs import CompilationPairs, paired, partner_of
from tracing.analyze.passes.compilations import compilations, label
from tracing.analyze.passes.named_pass import require_in_a_kernel
from tracing.analyze.passes.pass_pairs import PassPair, PassPairs
from tracing.cli.app import out, spinner
from tracing.cli.look.passes.question import PassQuestion
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived
from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Compilation, Kernel
from tracing.report.passes import pass_pairs as report
from tracing.report.passes.passes_json import pair_json, pass_pairs_json


def print_pairs(a: str, b: str, runs: Path, asked: PassQuestion) -> int:
    """Print the passes after which the IR of two runs differs; the exit status is 1 if it does."""
    run_a, run_b = _opened(a, runs), _opened(b, runs)
    matched = _matched(run_a, run_b, asked)
    _require_one_kernel(run_a, run_b, matched.pairs, asked)
    if len(matched.pairs) > 1:
        status = _print_all(run_a, run_b, matched.pairs)
    else:
        with spinner(f"comparing the passes of {matched.pairs[0][0].kernel_name}"):
            compared = CompilationComparer(run_a, run_b).compared(*matched.pairs[0])
        status = _print_one(run_a, run_b, compared, asked)
    for line in report.one_sided_text(matched, compilations(run_a), compilations(run_b)):
        out.print(line)
    return 1 if matched.only_a or matched.only_b else status


def _require_one_kernel(
    run_a: store.Run, run_b: store.Run, pairs: Sequence[tuple[Compilation, Compilation]], asked: PassQuestion
) -> None:
    if len(pairs) > 1 and asked.which is not None:
        require_in_a_kernel([run_a, run_b], asked.which, asked.stage)
        known = compilations(run_a)
        choices = "\n  ".join(f"--kernel {quote(label(known, a))}" for a, _ in pairs)
        raise Problem(
            f"--pass needs one kernel, and both runs have {len(pairs)}", f"choose one:\n  {choices}"
        )


def print_pairs_json(name_a: str, name_b: str, runs: Path, asked: PassQuestion) -> int:
    """Print as JSON the first pass after which the IR of two runs differs; returns the exit status."""
    run_a, run_b = _opened(name_a, runs), _opened(name_b, runs)
    matched = _matched(run_a, run_b, asked)
    _require_one_kernel(run_a, run_b, matched.pairs, asked)
    comparer = CompilationComparer(run_a, run_b)
    rows = [comparer.compared(*pair) for pair in matched.pairs]
    answer = pass_pairs_json((run_a, run_b), rows, matched)
    if asked.which is not None:
        pairs = rows[0].passes
        wanted = _wanted(pairs, asked.which, asked.stage)
        lines = report.pair_diff_text(pairs, wanted)
        answer |= {"pass": pair_json(wanted), "diff": "".join(f"{line}\n" for line in lines)}
    print(json.dumps(answer, indent=2))
    return int(answer["status"])


def _matched(run_a: store.Run, run_b: store.Run, asked: PassQuestion) -> CompilationPairs:
    matched = paired(compilations(run_a), compilations(run_b))
    only_a, only_b = _not_in(run_b, matched.only_a), _not_in(run_a, matched.only_b)
    if asked.kernels:
        pairs = [_chosen(run_a, run_b, asked.kernels)]
        # a name means all compilations of that name; a hash, NAME#2 or two names mean only those
        name = asked.kernels[0] if len(asked.kernels) == 1 else None
        of_name = [[one for one in only if one.kernel_name == name] for only in (only_a, only_b)]
        return CompilationPairs(pairs, *of_name)
    if not matched.pairs:
        raise Problem(
            f"{run_a.path} and {run_b.path} have no kernel in common",
            "name one of each: --kernel KERNEL_OF_A --kernel KERNEL_OF_B",
        )
    return CompilationPairs(matched.pairs, only_a, only_b)


def _not_in(run: store.Run, only: Sequence[Compilation]) -> list[Compilation]:
    # without those that the run launched from a warm cache
    launched = {one.hash for one in run.records(Kernel)} if only else ()
    return [one for one in only if one.hash not in launched]


def _opened(name: str, runs: Path) -> store.Run:
    run = store.open_run(name, runs)
    env = run.info.environment
    if run.underived() and env.triton != installed("triton"):
        torch, folder = env.torch.partition("+")[0], f".venv-{env.triton}"
        raise Problem(
            f"{run.path} has no IR between its passes yet: it was recorded with Triton {env.triton}, and "
            f"here is {installed('triton')}",
            f"derive it with that Triton: `make venv TORCH={torch} TRITON={env.triton} VENV={folder}`, "
            f"then `{folder}/bin/tracing passes {quote(str(run.path))}`; or record with `--ir during`",
        )
    return open_derived(name, runs)


def _chosen(run_a: store.Run, run_b: store.Run, kernels: Sequence[str]) -> tuple[Compilation, Compilation]:
    if len(kernels) > 2:
        raise Problem(
            f"two runs take one kernel each, and {len(kernels)} are given", "give --kernel once or twice"
        )
    a = chosen_kernel(run_a, kernels[0])
    if len(kernels) == 2:
        return a, chosen_kernel(run_b, kernels[1])
    b = partner_of(a, compilations(run_b))
    if b is None:
        raise Problem(
            f"{run_b.path} has no kernel {a.kernel_name}",
            "name a kernel of that run with a second --kernel; `tracing passes "
            f"{quote(str(run_b.path))}` lists them",
        )
    return a, b


def _print_all(run_a: store.Run, run_b: store.Run, pairs: Sequence[tuple[Compilation, Compilation]]) -> int:
    rows: list[tuple[str, ComparedCompilations]] = []
    known, comparer = compilations(run_a), CompilationComparer(run_a, run_b)
    with spinner(f"comparing the passes of {len(pairs)} kernels") as now:
        for number, (a, b) in enumerate(pairs, 1):
            now(f"comparing the passes of kernel {number} of {len(pairs)}")
            rows.append((label(known, a), comparer.compared(a, b)))
    for line in report.kernels_table(rows):
        out.print(line)
    both = f"{quote(str(run_a.path))} {quote(str(run_b.path))}"
    shown = next((name for name, one in rows if one.differ), rows[0][0])
    out.print(Text(f"one kernel: tracing passes {both} --kernel {quote(shown)}"))
    return int(any(one.differ for _, one in rows))


def _print_one(
    run_a: store.Run, run_b: store.Run, compared: ComparedCompilations, asked: PassQuestion
) -> int:
    pairs = compared.passes
    versions = (run_a.info.environment.triton, run_b.info.environment.triton)
    lines = [*report.pair_heading(compared.a, compared.b, versions)]
    if asked.which is not None:
        lines += report.pair_diff_text(pairs, _wanted(pairs, asked.which, asked.stage))
        lines += report.not_repeated_text(compared)
        lines += report.artefacts_text(compared.equal) if compared.unexplained else ()
    else:
        if not pairs.differs_throughout:  # each row would say that
            lines += report.pairs_text(pairs, [row for row in pairs.pairs if _shown(row, asked)])
        lines += report.verdict_text(compared)
        lines += report.attributes_text(pairs)
        lines += report.artefacts_text(compared.equal)
        if pairs.differs_throughout:
            lines += report.entry_diff_text(pairs)
        elif (first := pairs.first_divergence()) is not None:
            lines += report.pair_diff_text(pairs, first)
    for line in lines:
        out.print(line)
    return int(compared.differ)


def _shown(row: PassPair, asked: PassQuestion) -> bool:
    return asked.stage in (None, row.stage) and (row.changed or row.state != "equal" or not asked.changed)


def _wanted(pairs: PassPairs, which: str, stage: str | None) -> PassPair:
    # by the name in a; a pass that only b has by its name in b
    of_a = [row.a for row in pairs.pairs if row.a is not None]
    of_b = [row.b for row in pairs.pairs if row.a is None and row.b is not None]
    among = of_a if which.isdecimal() or any(one.name == which.partition("#")[0] for one in of_a) else of_b
    wanted = analysis.find_pass(among or of_a, which, stage)
    return next(row for row in pairs.pairs if wanted in (row.a, row.b))
