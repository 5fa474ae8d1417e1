"""A run, its launches and their kernels, for a terminal."""

from __future__ import annotations

import os.path
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from rich.text import Text

from tracing.analyze.runs.launch_counts import launch_counts, launches_between
from tracing.analyze.runs.recording_commands import target_of
from tracing.analyze.runs.unlaunched import unlaunched
from tracing.model import Compilation, KernelLaunch, Outcome, ReadVariable, RunInfo, Winner
from tracing.model.one_line import one_line
from tracing.report.findings import crash_text, cut_text, ending_text
from tracing.report.text import DIGITS, Line, launch_text, plural
from tracing.store import Run

_TUNERS = {"inductor": "Inductor's autotuner", "triton": "@triton.autotune"}
PAGE = 1000  # launches that `tracing show` prints at once
SCREEN = 20  # launches; more of them scroll the heading away
KERNELS = 20  # whose launches are counted


def run_text(run: Run, page: int | None = None) -> Iterator[Line]:
    """Everything that `tracing show` prints of a run, line by line.

    page -- print the launches of this page, from 1, and a count of launches for each kernel; None: print all
            launches
    """
    yield from heading_text(run)
    kernel_seen: set[str] = set()
    counts = launch_counts(run)
    total = sum(one.total() for one in counts.values())
    start, stop = (0, total) if page is None else (PAGE * (page - 1), PAGE * page)
    if total > SCREEN:
        first = next(iter(launches_between(run, counts, start, start + 1)), None)
        show = f"tracing show {shlex.quote(str(run.path))} --launch {first.index if first else 0}"
        yield f"launches  {total}; one in full: `{show}`"
    for launch in launches_between(run, counts, start, stop):
        if launch.kernel.hash not in kernel_seen:
            kernel_seen.add(launch.kernel.hash)
            yield from kernel_text(launch)
        yield from launch_text(launch)
    yield ""
    if page is not None and total > PAGE:
        yield from _paged(run, page, counts, total)
    else:
        yield f"{plural(total, 'launch')} of {plural(len(kernel_seen), 'kernel')}{_more_compiled(run)}"
    if run.info.operators == "digests":
        yield f"operators outside of Triton, with digests: `tracing show {run.path} --operators`"
    yield from ending_text(run, whole=page is None or total <= PAGE)


def _more_compiled(run: Run) -> str:
    # why more kernels have passes than launches
    tuners = {one.kernel: _TUNERS[one.tuner] for one in run.records(Winner)}

    def why(one: Compilation) -> str:
        if one.eager:
            return "by the run in eager"
        tuner = tuners.get(one.kernel_name)
        return f"for {tuner}, which chose another configuration" if tuner else "without a recorded launch"

    counts = Counter(map(why, unlaunched(run)))
    parts = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"; {counts.total()} more compiled: {parts}" if counts else ""


def pages(run: Run) -> int:
    """The number of pages of `run_text`, at least 1."""
    total = sum(one.total() for one in launch_counts(run).values())
    return max(1, -(-total // PAGE))


def _paged(run: Run, page: int, counts: Mapping[str, Counter[str]], total: int) -> Iterator[Line]:
    by_kernel = sum(counts.values(), Counter[str]())
    yield f"{plural(total, 'launch')} of {plural(len(by_kernel), 'kernel')} by name:"
    for name, count in by_kernel.most_common(KERNELS):
        yield f"{count:>10}  {name or 'a kernel that was not recorded'}"
    if len(by_kernel) > KERNELS:
        yield f"{total - sum(n for _, n in by_kernel.most_common(KERNELS)):>10}  of other kernels"
    of = -(-total // PAGE)
    yield Text.assemble(
        (f"page {page} of {of}", "bold"),
        f": launches {PAGE * (page - 1)}:{min(total, PAGE * page)}; other pages: `tracing show {run.path} "
        f"--page {page % of + 1}`, all: `--all`",
    )


def heading_text(run: Run) -> Iterator[Line]:
    """What was run, on which device, with which versions."""
    info, env = run.info, run.info.environment
    yield Text(run.name, "bold")
    yield _what(info)
    option = f" (--target {target_of(env)})" if env.virtual else ""
    compiled = f", kernels compiled for {env.target}{option}" if env.target != "cpu" else ""
    yield f"device    {env.device}{compiled}, on {env.host}"
    yield f"versions  torch {env.torch}, triton {env.triton}, Python {env.python}"
    if env.knobs:
        yield "knobs     " + " ".join(f"{name}={value}" for name, value in env.knobs.items())
    if read := list(run.records(ReadVariable)):
        yield "read      " + ", ".join(map(_variable, read))
    yield from cut_text([run])


def _what(info: RunInfo) -> str:
    seed = "" if info.seed is None else f", seed {info.seed}"
    if info.kind == "program":
        what = f"{shlex.join(info.program)} in {info.folder}"
    else:
        what = f"{info.case} ({os.path.relpath(info.path or os.curdir)})"
    return f"{info.kind:<9} {one_line(what)}{seed}, {info.started}"


def _variable(one: ReadVariable) -> str:
    if one.value is None:
        return f"{one.name} (not recorded)" if one.redacted else f"{one.name} (not set)"
    return f"{one.name}={one.value}"


def kernel_text(launch: KernelLaunch) -> Iterator[Line]:
    """The kernel of a launch."""
    kernel = launch.kernel
    yield ""
    yield Text.assemble((kernel.name, "bold"), f"  {kernel.hash[:DIGITS]}  {kernel.target}")
    if kernel.target != "cpu":
        yield (
            f"    num_warps={kernel.num_warps} num_stages={kernel.num_stages} num_ctas={kernel.num_ctas}"
            + "".join(f" {name}={value}" for name, value in kernel.constants.items())
        )
    yield f"    stages kept: {', '.join(kernel.stages) or 'none'}"


def summary_text(run: Run) -> str:
    """One line of `tracing list`."""
    outcome = next(run.records(Outcome), None)
    crash = crash_text(run)
    status = outcome.status if outcome else f"unfinished ({crash})" if crash else "unfinished"
    env = run.info.environment
    program = f"  {one_line(shlex.join(run.info.program))}" if run.info.program else ""  # empty: a case
    command = run.info.command
    by = f"  by {command}" if command not in ("", "run") else ""
    versions = f"torch {env.torch}, triton {env.triton}"
    target = f" {env.target}" if env.target != "cpu" else ""
    return f"{run.name}  {status}  {env.device}{target}  {versions}{by}{program}"


def difference_of_infos(a: RunInfo, b: RunInfo) -> Iterator[str]:
    """The differences in the environments of two runs, which are not divergences."""
    facts = {
        "case": (a.case, b.case),
        "program": (shlex.join(a.program), shlex.join(b.program)),
        "seed": (a.seed, b.seed),
        **{
            name: (getattr(a.environment, name), getattr(b.environment, name))
            for name in ("device", "target", "torch", "triton")
        },
    }
    knobs = (a.environment.knobs, b.environment.knobs)
    for name in dict.fromkeys((*knobs[0], *knobs[1])):
        if not name.startswith("TORCHELASTIC_"):  # torchrun sets these, with other values in every job
            facts[name] = (knobs[0].get(name, "not set"), knobs[1].get(name, "not set"))
    for name, (of_a, of_b) in facts.items():
        if of_a != of_b:
            yield f"{name} differs: {of_a} | {of_b}"
