"""The report on replays of a launch: the verdict, then the counts that it is based on.

It is built as lines of plain text or as JSON data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import msgspec

from tracing.analyze.compare.signature_pair import constants_of
from tracing.analyze.memory.evidence import evidence_sentence
from tracing.analyze.replay.replay_verdict import (
    CodeDiffers,
    InputsChanged,
    InputsDiffer,
    NeedsOtherMemory,
    NeedsSurroundings,
    NotComparable,
    NothingRecorded,
    NotReproduced,
    Recorded,
    ReplaysDiffer,
    ReplayVerdict,
    Reproduced,
    UndecidedReplay,
    left_as,
    rate,
    varies,
)
from tracing.model import (
    DifferingElements,
    KernelLaunch,
    MemoryEvidence,
    ReplayResult,
    ReplaySeries,
    Side,
)
from tracing.report.run_json import evidence_json

_OTHER = "memory whose content was not kept (unwritten, or outside of its arguments)"

RunNames: TypeAlias = Mapping[Side, str]  # names of the runs on the command line

_KINDS = {
    ReplaysDiffer: "race",
    CodeDiffers: "code",
    InputsDiffer: "inputs",
    InputsChanged: "not reproduced",
    NeedsSurroundings: "surroundings",
    NeedsOtherMemory: "surroundings",
    Reproduced: "reproduced",
    NotReproduced: "not reproduced",
    NothingRecorded: "nothing recorded",
    UndecidedReplay: "undecided",
    NotComparable: "undecided",
}


def replay_text(
    result: ReplayResult,
    verdict: ReplayVerdict,
    recorded: Recorded,
    launches: Mapping[Side, KernelLaunch],
    names: RunNames,
    evidence: Sequence[MemoryEvidence] = (),
) -> Iterator[str]:
    """The verdict, and for each series the counts of differing replays and of replays with the recorded bits.

    recorded -- the recorded results of the launch in each run
    evidence -- of the launch, that was recorded: replays with equal bits do not refute a race
    """
    launch = launches[result.series[0].launched]
    programs = prod(launch.grid)
    where = f"on {result.device}" if result.device else "in the interpreter"
    if not result.device and programs > 1:
        where += ", its programs in another order each time"
    yield f"launch #{launch.index} {launch.kernel_name}, replayed {where}:"
    for one in evidence:
        yield f"  memory: {evidence_sentence(one)}"
    raced = any(one.kind == "race" for one in evidence)
    yield f"  {verdict_text(verdict, names, launched_otherwise(launches), raced=raced)}"
    for series in result.series:
        if len(names) > 1:
            who = f"launch #{launches[series.launched].index} of {names[series.launched]}"
            yield f"  {who} on the inputs of {names[series.inputs]}:"
        yield from _series_text(series, recorded, names)
    if isinstance(verdict, CodeDiffers):
        yield "  they differ in:"
        yield from _elements_text(verdict.elements)
    if not result.device and len(names) > 1:
        yield "  (the interpreter executes the source of both kernels, and no compiled code)"
    if not result.device and not isinstance(verdict, ReplaysDiffer):
        order = "between programs that interleave, or " if programs > 1 else ""
        yield f"  (programs run one after another: a race {order}between threads of a program does not show)"


def launched_otherwise(launches: Mapping[Side, KernelLaunch]) -> tuple[str, ...]:
    """The differences of two launches of equally configured kernels: grid and scalar arguments."""
    if len(launches) < 2 or len({repr(_configured(one)) for one in launches.values()}) > 1:
        return ()
    a, b = launches["a"], launches["b"]
    values = [{arg.name: repr(arg.value) for arg in one.args if arg.tensor is None} for one in (a, b)]
    names = [name for name in values[0] | values[1] if values[0].get(name) != values[1].get(name)]
    return tuple([*(["grid"] if a.grid != b.grid else []), *names])


def _configured(launch: KernelLaunch) -> object:
    kernel = launch.kernel
    constants = sorted(constants_of(kernel).items())
    return kernel.num_warps, kernel.num_stages, kernel.num_ctas, constants


def verdict_text(
    verdict: ReplayVerdict, names: RunNames, otherwise: Sequence[str] = (), *, raced: bool = False
) -> str:
    """A verdict in a sentence.

    otherwise -- settings that differ between the launches of the two runs
    raced     -- the run recorded a race of the launch
    """
    deterministic = "the race does not show in replays" if raced else "deterministic"
    match verdict:
        case ReplaysDiffer(series):
            whose = " and ".join(dict.fromkeys(names[one.launched] for one in series))
            of = f" of {whose}" if len(names) > 1 else ""
            return f"the kernel is not deterministic: replays{of} on equal bytes differ from each other"
        case CodeDiffers(inputs):
            on = f"on equal inputs, those of {names[inputs]}"
            what = f"it is launched differently ({', '.join(otherwise)})" if otherwise else "its code differs"
            return f"{what}: {' and '.join(names.values())} produce different results {on}, every time"
        case InputsDiffer(arguments):
            return f"its inputs differ and cause the difference: {', '.join(arguments)}"
        case InputsChanged(arguments):
            return f"not reproduced: when recorded anew, {', '.join(arguments)} held other contents"
        case NeedsSurroundings(appeared, missing):
            only = f"every replay reproduces the bits of {names[appeared]}, none those of {names[missing]}"
            return f"it needs its surroundings (streams, neighbours, memory outside of its arguments): {only}"
        case NeedsOtherMemory():
            return f"it needs its surroundings: elements depend on {_OTHER}"
        case UndecidedReplay():
            return (
                f"cannot be decided: elements that the launch computes depend on {_OTHER}, "
                "and the recorded bits include them"
            )
        case NotComparable():
            return (
                "cannot be decided: every replay writes the same bits, but the recorded bits include "
                "elements that this launch does not write, and their content was not kept; "
                "`tracing run --keep-inputs` keeps it"
            )
        case Reproduced():
            return (
                f"{deterministic}: every replay reproduces the recorded bits of "
                f"{' and '.join(names.values())}"
            )
        case NothingRecorded():
            return f"{deterministic}; the run has no digests of this launch's outputs"
        case NotReproduced():
            left = f"no replay reproduces the recorded bits of {' or '.join(names.values())}"
            return f"not reproduced: {left}; zeros replaced memory whose content was not kept"


def payload_text(payloads: ReplayResult) -> Iterator[str]:
    """The answer of FpSan: equal payloads mean rounding, different ones do not."""
    kernels = "both kernels produce" if len(payloads.series) > 1 else "replays produce"
    changed = [one.varying for one in payloads.series if varies(one)]
    changed += [one.elements for one in payloads.differences if _same_inputs(payloads, one.series)]
    if not changed:
        yield (
            f"under FpSan {kernels} equal payloads: the difference is rounding, of equal operations "
            "in another order"
        )
        return
    yield f"under FpSan {kernels} different payloads: not only rounding, but a bug, or the kernels use"
    yield "  an identity that FpSan does not preserve, such as sqrt(x) * sqrt(x) = x"
    yield from _elements_text(changed[0])


def replay_json(
    result: ReplayResult,
    verdict: ReplayVerdict,
    recorded: Recorded,
    launches: Mapping[Side, KernelLaunch],
    evidence: Sequence[MemoryEvidence] = (),
) -> dict[str, Any]:
    """Keys: verdict, kernel, launch, device, series, differences, memory_evidence.

    The series are those of `ReplayResult`.
    """
    series = [
        {
            "launched": one.launched,
            "inputs": one.inputs,
            "replays": len(one.outcomes),
            "differing": rate(one).differing,
            "as_recorded": {side: left_as(one, bits, side) for side, bits in recorded.items() if bits},
            "varying": msgspec.to_builtins(one.varying),
            "unwritten": msgspec.to_builtins(one.unwritten),
            "untouched": msgspec.to_builtins(one.untouched),
        }
        for one in result.series
    ]
    launched = isinstance(verdict, CodeDiffers) and launched_otherwise(launches)
    raced = any(one.kind == "race" for one in evidence) and isinstance(verdict, Reproduced | NothingRecorded)
    return {
        "verdict": "configuration" if launched else "race" if raced else _KINDS[type(verdict)],
        "kernel": next(iter(launches.values())).kernel_name,
        "launch": {side: one.index for side, one in launches.items()},
        "device": result.device or "interpreter",
        "series": series,
        "differences": msgspec.to_builtins(result.differences),
        "memory_evidence": [evidence_json(one) for one in evidence],
    }


def _series_text(series: ReplaySeries, recorded: Recorded, names: RunNames) -> Iterator[str]:
    indent = "    " if len(names) > 1 else "  "
    yield f"{indent}{rate(series)} differ from the first"
    yield from _elements_text(series.varying, indent)
    of = len(series.outcomes)
    counts = {names[side]: left_as(series, bits, side) for side, bits in recorded.items() if bits}
    left = [
        f"{count} of {of} reproduce the recorded bits of {name}"
        for name, count in counts.items()
        if count is not None
    ]
    if left:
        yield f"{indent}{', '.join(left)}"
    if series.unwritten:
        yield f"{indent}elements that depend on {_OTHER}:"
        yield from _elements_text(series.unwritten, indent)
    if series.untouched:
        yield f"{indent}not written by this launch, and so not compared:"
        yield from _elements_text(series.untouched, indent)


def _same_inputs(result: ReplayResult, pair: tuple[int, int]) -> bool:
    a, b = (result.series[number] for number in pair)
    return a.inputs == b.inputs


def _elements_text(differing: Iterable[DifferingElements], indent: str = "  ") -> Iterator[str]:
    for one in differing:
        more = ", ..." if sum(stop - start for start, stop in one.ranges) < one.count else ""
        ranges = ", ".join(f"{start}:{stop}" for start, stop in one.ranges)
        by = f", by up to {one.largest:.3g}" if one.largest else ""
        yield f"{indent}  {one.argument}: {one.count} of {one.of} elements, {ranges}{more}{by}"
