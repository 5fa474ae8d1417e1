"""A run and a comparison, for a terminal.

A launch is written as `name[grid=(x, y, z)](argument=value, …)`; a tensor as `t: f32[32, 1, 896]` with
the first digits of its digest, or of both digests if the launch changed it.
"""

from __future__ import annotations

import os.path
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rich.text import Text

from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.analyze.memory.uninitialised_reads import uninitialised_reads
from tracing.analyze.runs.launch_counts import launch_counts, launches_between
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.analyze.runs.unlaunched import reasons_for_no_kernel, unlaunched
from tracing.model import (
    Compilation,
    Cut,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    Outcome,
    OutOfBounds,
    ReadVariable,
    RunInfo,
    TensorMeta,
    Winner,
)
from tracing.report.user_frames import traceback_text
from tracing.store import Run, rank_of
from tracing.store.cut_files import cut_files
from tracing.store.graph_file import PythonLine

_NAMED = 4  # kernels that one sentence names
_TUNERS = {"inductor": "Inductor's autotuner", "triton": "@triton.autotune"}
CHECKED = "docs/case.md#check-a-hand-written-kernel"  # how a case checks a kernel of the program
ONE_BY_ONE = f"check them one by one, each in a case of its own: {CHECKED}"
Line: TypeAlias = str | Text  # the console has no markup: a str is printed unchanged, a Text with its styles
SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
}  # fmt: skip
PAGE = 1000  # launches that `tracing show` prints at once
KERNELS = 20  # whose launches are counted
DIGITS = 12  # hex digits of a digest: 48 bits distinguish the tensors of one run


def plural(count: int, noun: str) -> str:
    """`1 launch`, `2 launches`."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count} {noun}{ending}"


def tensor_text(meta: TensorMeta) -> str:
    """`t: f32[32, 1, 896]`, the form in which torch's DebugMode writes a tensor."""
    return f"t: {SHORT.get(meta.dtype, meta.dtype)}[{', '.join(map(str, meta.shape))}]"


def line_text(line: PythonLine) -> str:
    """`cases/silu.py:9 in forward: return x * y`, relative to the working directory if it is inside of it."""
    near = os.path.relpath(line.file)
    return f"{line.file if near.startswith('..') else near}:{line.line} in {line.function}: {line.code}"


def argument_text(arg: KernelArg) -> str:
    """`[OUT] out_ptr0=t: f32[32, 1, 896]  4d0bd1650fb8 -> 69f6cb5239c5  (out)`."""
    if arg.tensor is None:
        return f"{arg.name}={arg.value}"
    mark = "[OUT] " if (arg.writes and arg.declared != "unknown") or arg.modified else ""
    wrote = f", last written by {arg.writer}" if arg.writer else ""
    return f"{mark}{arg.name}={tensor_text(arg.tensor)}  {_digests(arg)}  ({arg.declared}{wrote})"


def _digests(arg: KernelArg) -> str:
    if arg.after is None:
        return "not digested"
    after = arg.after.bits[:DIGITS]
    before = arg.before.bits[:DIGITS] if arg.before else "?"
    text = after if before == after else f"{before} -> {after}"
    counts = {"nan": arg.after.nan, "inf": arg.after.inf}
    return text + "".join(f" {name}={count}" for name, count in counts.items() if count)


def launch_text(launch: KernelLaunch) -> Iterator[str]:
    """One launch, one line per argument."""
    site = [str(launch.site)] if launch.site else []
    remarks = [*site, *step_text(launch), *times(launch), *([] if launch.finished else ["did not finish"])]
    suffix = f"  # {', '.join(remarks)}" if remarks else ""
    yield f"#{launch.index} [Triton] {launch.kernel_name}[grid={launch.grid}]({suffix}"
    for position, arg in enumerate(launch.args):
        yield f"    {argument_text(arg)}{user_hashes(launch, position)},"
    yield ")"


def step_text(launch: KernelLaunch) -> Iterator[str]:
    """`step 3, launch 7 of it`, both from 0, if the program has steps."""
    if launch.step is not None:
        yield f"step {launch.step[0]}, launch {launch.step[1]} of it"


def times(launch: KernelLaunch) -> Iterator[str]:
    """The duration of a launch on the host and on the device, if it was measured."""
    if launch.time is not None:
        yield f"{launch.time.wall_us:.1f} µs on the host"
        if launch.time.device_us is not None:
            yield f"{launch.time.device_us:.1f} µs on the device"


def user_hashes(launch: KernelLaunch, position: int) -> str:
    """`  hash_fn: 3.5 -> 4.5`; one value if the other is missing or equal."""
    if launch.hashes is None:
        return ""
    sides = (launch.hashes.before, launch.hashes.after)
    hashes = dict.fromkeys(repr(side[position]) for side in sides if position in side)
    return f"  hash_fn: {' -> '.join(hashes)}" if hashes else ""


def run_text(run: Run, page: int | None = None) -> Iterator[Line]:
    """Everything that `tracing show` prints of a run, line by line.

    page -- print the launches of this page, from 1, and a count of launches for each kernel; None: print all
            launches
    """
    yield from heading_text(run)
    kernel_seen: set[str] = set()
    counts = launch_counts(run)
    start = PAGE * ((page or 1) - 1)
    launches = run.launches() if page is None else launches_between(run, counts, start, start + PAGE)
    for launch in launches:
        if launch.kernel.hash not in kernel_seen:
            kernel_seen.add(launch.kernel.hash)
            yield from kernel_text(launch)
        yield from launch_text(launch)
    yield ""
    total = sum(one.total() for one in counts.values())
    if page is not None and total > PAGE:
        yield from _paged(run, page, counts, total)
    else:
        yield f"{plural(total, 'launch')} of {plural(len(kernel_seen), 'kernel')}{_more_compiled(run)}"
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
    yield f"device    {env.device}, kernels compiled for {env.target}, on {env.host}"
    yield f"versions  torch {env.torch}, triton {env.triton}, Python {env.python}"
    if env.knobs:
        yield "knobs     " + " ".join(f"{name}={value}" for name, value in env.knobs.items())
    if read := list(run.records(ReadVariable)):
        yield "read      " + ", ".join(map(_variable, read))
    yield from cut_text([run])


def _what(info: RunInfo) -> str:
    seed = "" if info.seed is None else f", seed {info.seed}"
    if info.kind == "program":
        return f"program   {shlex.join(info.program)} in {info.folder}{seed}, {info.started}"
    path = os.path.relpath(info.path or os.curdir)
    return f"{info.kind:<9} {info.case} ({path}){seed}, {info.started}"


def _variable(one: ReadVariable) -> str:
    if one.value is None:
        return f"{one.name} (not recorded)" if one.redacted else f"{one.name} (not set)"
    return f"{one.name}={one.value}"


def kernel_text(launch: KernelLaunch) -> Iterator[Line]:
    """The kernel of a launch."""
    kernel = launch.kernel
    yield ""
    yield Text.assemble((kernel.name, "bold"), f"  {kernel.hash[:DIGITS]}  {kernel.target}")
    yield (
        f"    num_warps={kernel.num_warps} num_stages={kernel.num_stages} num_ctas={kernel.num_ctas}"
        + "".join(f" {name}={value}" for name, value in kernel.constants.items())
    )
    yield f"    stages kept: {', '.join(kernel.stages) or 'none'}"


def ending_text(run: Run, *, whole: bool) -> Iterator[Line]:
    """What was noticed, what was not covered, and how the run ended; whole: with all memory evidence."""
    for line in out_of_bounds_text(run):
        yield Text.assemble(("out of bounds", "yellow"), f": {line}")
    if whole:
        yield from memory_text(run, but=("out of bounds",))
    else:
        yield "wrong use of memory is listed with `--all` only"
    yield from uninitialised_text(run)
    yield from no_kernel_text(run)
    yield from uncovered_text([run])
    for cut in run.records(Cut):
        after = plural(cut.launches, "launch")
        yield Text.assemble(
            ("recorder failed", "yellow"), f": after {after}; the program continued: {cut.error}"
        )
    outcomes = list(run.records(Outcome))
    for outcome in outcomes:
        yield f"{outcome.status}: {outcome.detail}"
        yield from traceback_text(run, outcome)
    if not outcomes:
        yield Text.assemble(("unfinished", "yellow"), ": the process was killed, or the case still runs")


def out_of_bounds_text(run: Run, *, padding: bool = True) -> Iterator[str]:
    """Accesses of kernels outside of their arguments, a line for each argument and each line of a kernel.

    padding -- False: without loads inside the argument's storage, which a kernel may mean
    """
    for process in run.processes(OutOfBounds):
        signatures = run.signatures(process)
        kernels = {
            line.index: signatures[line.signature][0].name
            for line in run.view(process, LaunchLine, LaunchLine)
            if line.signature in signatures
        }
        for one in run.out_of_bounds(process):
            if not padding and one.inside and one.access == "load":
                continue
            kernel = kernels.get(one.launch, "a launch that is not recorded")
            yield f"#{one.launch} {kernel}: {one.what}" + (f" ({one.where})" if one.where else "")


def memory_text(run: Run, but: tuple[str, ...] = ()) -> Iterator[Text]:
    """The memory evidence, a line each.

    but -- kinds that are left out
    """
    names: dict[tuple[int, int], str] = {}
    for rank in dict.fromkeys(map(rank_of, run.processes())):
        evidence = [one for one in memory_evidence(run, rank) if one.kind not in but]
        if evidence:
            names = {(rank, one.index): one.kernel_name for one in run.launches(rank)}
        for one in evidence:
            kernel = names.get((rank, one.launch), "a launch that is not recorded")
            of = f" of rank {rank}" if rank else ""
            sentence = f": #{one.launch}{of} {kernel}: {evidence_sentence(one)}"
            yield Text.assemble(("memory", "yellow"), sentence)


def uninitialised_text(run: Run, launch: int | None = None) -> Iterator[Text]:
    """The kernels that read elements which nothing wrote, a line for each argument.

    launch -- only those that this launch is the first to read; None: all
    """
    for one in uninitialised_reads(run):
        if launch in (None, one.launch):
            of = f" of rank {one.rank}" if one.rank else ""
            more = f", and {plural(one.launches - 1, 'later launch')} of it" if one.launches > 1 else ""
            at = f"from [{one.first}] on" if one.count > 1 else f"[{one.first}]"
            what = f"reads {plural(one.count, 'element')} of {one.argument}, {at}, that nothing wrote"
            sentence = f": #{one.launch}{of} {one.kernel}{more}: {what}"
            yield Text.assemble(("uninitialised", "yellow"), sentence)


def no_kernel_text(run: Run) -> Iterator[Text]:
    """Why a run has no launch of a Triton kernel, a line for each reason."""
    for reason in reasons_for_no_kernel(run):
        yield Text.assemble(("no Triton kernel", "yellow"), f": {reason}")


def reference_text(kernels: int) -> str:
    """How a number of hand-written kernels that nothing checks can be checked."""
    them = "it" if kernels == 1 else "them one by one, each in a case of its own"
    return (
        f"    to check {them}: begin the function that launches it with "
        f"`if not torch.compiler.is_compiling(): return REFERENCE`: {CHECKED}"
    )


def unchecked_text(kernels: Sequence[str]) -> str:
    """`eager launches softmax_kernel, too: nothing checks what it computes`."""
    rest = f" and {len(kernels) - _NAMED} more" if len(kernels) > _NAMED else ""
    shown = ", ".join(kernels[:_NAMED]) + rest
    them = "they compute" if len(kernels) > 1 else "it computes"
    return f"eager launches {shown}, too: nothing checks what {them}"


def uncovered_text(runs: Iterable[Run]) -> Iterator[Text]:
    """The launches and operators that these runs did not cover, and the settings that cover them."""
    for record in dict.fromkeys(record for run in runs for record in not_covered(run)):
        setting = f"to cover it: {record.setting}" if record.setting else "no setting covers it"
        yield Text.assemble(("not covered", "yellow"), f": {record.what}; {setting}")


def cut_text(runs: Iterable[Run]) -> Iterator[Text]:
    """The truncated files of these runs, and the lost records."""
    for run in {run.path: run for run in runs}.values():
        for cut in cut_files(run.path):
            title = "damaged" if cut.damaged else "ends early"
            yield Text.assemble((title, "yellow"), f": {run.name}/{cut.path.name}: {cut.how}")


def summary_text(run: Run) -> str:
    """One line of `tracing list`."""
    outcome = next(run.records(Outcome), None)
    status = outcome.status if outcome else "unfinished"
    env = run.info.environment
    program = f"  {shlex.join(run.info.program)}" if len(run.info.program) > 1 else ""  # it has arguments
    return f"{run.name}  {status}  {env.device} {env.target}  torch {env.torch}, triton {env.triton}{program}"


def difference_of_infos(a: RunInfo, b: RunInfo) -> Iterator[str]:
    """The differences in the environments of two runs, which are not divergences."""
    facts = {
        "case": (a.case, b.case),
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
