"""The next commands to type for a divergence of two runs, or of the ranks of a job."""

from __future__ import annotations

from shlex import quote

from tracing import store
from tracing.analyze.compare.accused import accused
from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherResults,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OrderDiffers,
    OutputDiffers,
    ReadOutside,
)
from tracing.analyze.compare.evidence import may_have_other_seeds
from tracing.analyze.passes.compilation_pairs import partner_of
from tracing.analyze.passes.compilations import DIGITS, compilations, label
from tracing.analyze.ranks.rank_divergence import RankDivergence
from tracing.analyze.runs.repetition import changed_since
from tracing.analyze.runs.results import differing_results
from tracing.analyze.runs.winners import choices
from tracing.cli.answers.hints import (
    is_kept,
    of_facts,
    of_launch,
    of_one_seed,
    of_results,
    of_unwritten,
    repro_of,
    repro_of_operator,
)
from tracing.cli.answers.recording_hints import latest, record_command
from tracing.cli.options.run_pair import RunPair
from tracing.store.recorded_launch import find_launch


def of_divergence(divergence: Divergence, runs: RunPair) -> list[str]:
    """The commands that lead from a divergence to its cause, if the run and the device can answer them.

    A different input leads to the launch or operator that wrote it, never to the passes of the kernel that
    reads it.
    """
    if isinstance(divergence, LaunchDiffers):
        return _of_launch_difference(divergence, runs)
    if isinstance(divergence, OutputDiffers):
        return _of_output(divergence, runs)
    if isinstance(divergence, InputDiffers):
        return _of_input(divergence, runs)
    if isinstance(divergence, OrderDiffers):
        pairs = (divergence.pair, divergence.other)
        launches = sorted(one.b.index for one in pairs if one.b is not None)
        return [_show(runs[1], index) for index in launches]
    side = 0 if divergence.pair.b is None else 1
    return [_show(runs[side], divergence.pair.launch.index)]


def _show(run: store.Run, launch: int) -> str:
    return f"tracing show {quote(str(run.path))} --launch {launch}"


def _of_input(difference: InputDiffers, runs: RunPair) -> list[str]:
    # the producer; without one, the reader: its call site is the line to look at
    assert difference.pair.a is not None and difference.pair.b is not None
    cause, reader = difference.cause, (difference.pair.a.index, difference.pair.b.index)
    if isinstance(cause, OtherTensor):
        return [_show(run, index) for run, index in zip(runs, reader, strict=True)]
    if isinstance(cause, WrittenElsewhere):
        assert cause.writer.a is not None and cause.writer.b is not None
        return [_show(runs[0], cause.writer.a), _show(runs[1], cause.writer.b)]
    if isinstance(cause, Overrun):
        run, index = _made(cause.writer, runs)
        return [_show(run, index), *_reproduced(run, index, difference.pair.rank)]
    if isinstance(cause, Uninitialised):
        producer = [_show(*_made(cause.writer, runs))] if cause.writer else []
        certain = cause.elements is not None  # the interpreter recorded the unwritten elements
        decides = "" if certain else of_unwritten(runs[1])
        return [*producer, _show(runs[1], reader[1]), *filter(None, [decides])]
    if isinstance(cause, StreamCause):
        made = [_show(*_made(cause.writer, runs)), _show(runs[1], reader[1])]
        return [*made, *filter(None, [of_unwritten(runs[1])])]
    if isinstance(cause, Host) and cause.writer:
        return [_show(*_made(cause.writer, runs)), _show(runs[1], reader[1])]
    side = 0 if isinstance(cause, OperatorCause | Host) and cause.runs == "a" else 1
    shown = _show(runs[side], reader[side])
    return [shown, *of_operator(cause, runs[1], difference.pair.rank)]


def of_operator(cause: Cause | None, run: store.Run, rank: int) -> list[str]:
    """The command that calls an operator of torch repeatedly on equal inputs; none for another cause.

    run -- of the second call
    """
    if not isinstance(cause, OperatorCause) or not isinstance(cause.how, OtherResults):
        return []
    return repro_of_operator(run, cause.how.calls[1], rank) if cause.not_deterministic else []


def _made(writer: Writer, runs: RunPair) -> tuple[store.Run, int]:
    # a run that has the launch, and its number there
    if writer.b is not None:
        return runs[1], writer.b
    assert writer.a is not None
    return runs[0], writer.a


def _reproduced(run: store.Run, index: int, rank: int) -> list[str]:
    _, launch = find_launch(run, index, rank)
    return repro_of(run, launch, rank, is_kept(run, launch, rank))


def _of_output(difference: OutputDiffers, runs: RunPair) -> list[str]:
    launch, rank = difference.pair.b, difference.pair.rank
    assert launch is not None
    if launch.kernel.kind != "triton" or difference.doubt in ("addresses", "code"):
        return [_show(runs[1], launch.index)]  # memory at an address was not recorded; lost code cannot run
    if isinstance(difference.doubt, ReadOutside):
        return [_show(runs[1], launch.index), *_reproduced(runs[1], launch.index, rank)]
    if difference.doubt:
        return [*_replay(runs, difference.pair), *_reproduced(runs[1], launch.index, rank)]
    return [*_replay(runs, difference.pair), *of_launch(runs[1], launch, rank)]


def _replay(runs: RunPair, pair: LaunchPair) -> list[str]:
    launch, other, rank = pair.a, pair.b, pair.rank
    if launch is None or other is None or other.kernel.kind != "triton":
        return []
    first, second = runs  # as for `tracing compare`
    if changed_since(first) and not is_kept(first, launch, rank):  # its inputs cannot be recorded anew
        first, second, launch = second, first, other
    whose = f" --rank {rank}" if rank else ""
    of_it = f"--launch {launch.index} --kernel {launch.kernel.hash[:12]}{whose}"
    return [f"tracing replay {quote(str(first.path))} {of_it} --against {quote(str(second.path))}"]


def _of_launch_difference(difference: LaunchDiffers, runs: RunPair) -> list[str]:
    if difference.tuned:
        return [
            f"tracing winners {quote(str(runs[0].path))} --output winners.json",
            record_command(runs[1], "--winners", "winners.json"),
        ]
    if any(change.name == "kernel" for change in difference.changes):
        pairs = zip(runs, (difference.pair.a, difference.pair.b), strict=True)
        return [_show(run, launch.index) for run, launch in pairs if launch is not None]
    if difference.code is not None and difference.code.stage != "source":
        return [_passes_of_both(difference.pair, runs)]
    if not differing_results(*runs):
        if difference.outputs and not _launched_anew_otherwise(difference, runs):
            return _replay(runs, difference.pair)
        if difference.outputs:
            return [_show(runs[1], difference.pair.launch.index)]
        return [_passes_of_both(difference.pair, runs)] if difference.code is not None else []
    if (swap := of_results(*runs)) is not None:
        return [swap]
    pairs = zip(runs, (difference.pair.a, difference.pair.b), strict=True)
    return [_show(run, launch.index) for run, launch in pairs if launch is not None]


def _launched_anew_otherwise(difference: LaunchDiffers, runs: RunPair) -> bool:
    # a replay would have to record its inputs anew, where the program may launch it with further numbers
    pair = difference.pair
    if pair.a is None or pair.b is None:
        return False
    fixed = pair.a.kernel.constants
    numbers = {"grid", *(arg.name for arg in pair.a.args if arg.tensor is None and arg.name not in fixed)}
    otherwise = any(change.name in numbers for change in difference.changes)
    kept = all(is_kept(run, one, pair.rank) for run, one in zip(runs, (pair.a, pair.b), strict=True))
    return otherwise and not kept


def _passes_of_both(pair: LaunchPair, runs: RunPair) -> str:
    # the kernel as one name for both runs, if that means its compilations in both
    assert pair.a is not None and pair.b is not None
    known, other = compilations(runs[0]), compilations(runs[1])
    hash_a, hash_b = pair.a.kernel.hash, pair.b.kernel.hash
    compiled = next((one for one in known if one.hash == hash_a), None)
    partner = partner_of(compiled, other) if compiled is not None else None
    name = label(known, compiled) if compiled is not None else ""
    if partner is not None and partner.hash == hash_b and ("#" in name or name == label(other, partner)):
        names = [name]
    else:
        names = [*dict.fromkeys((hash_a[:DIGITS], hash_b[:DIGITS]))]
    both = " ".join(quote(str(run.path)) for run in runs)
    return " ".join([f"tracing passes {both}", *(f"--kernel {quote(name)}" for name in names)])


def of_rank_divergence(run: store.Run, divergence: RankDivergence) -> list[str]:
    """The commands that lead from a divergence of ranks to its cause."""
    event = divergence.event
    if event.row is None or event.launched is None:
        return of_rank_update(run) if divergence.kind == "update" else []
    process = next(one for one in run.processes() if store.rank_of(one) == event.rank)
    launch = run.joiner(process).launch(event.row)
    if divergence.kind == "output":
        return of_launch(run, launch, event.rank)
    if divergence.kind != "launch":  # an input differs, or not every rank makes the launch
        return [_show(run, launch.index)]
    tuned = any(one.first.kernel == launch.kernel_name and not one.agreed for one in choices(run))
    winners = [f"tracing winners {quote(str(run.path))}"] if tuned else []
    return [*winners, *repro_of(run, launch, event.rank, is_kept(run, launch, event.rank))]


def of_rank_update(run: store.Run) -> list[str]:
    """The commands that record a job once more, with the operators that write parameters, and compare."""
    if run.info.operators != "none":
        return []  # it has them
    return [record_command(run, "--operators", "writers"), f"tracing ranks {latest(run)}"]


def deciding(divergence: Divergence, runs: tuple[store.Run, store.Run]) -> str | None:
    """The command that settles an uncertain cause; None: the cause is certain."""
    cause = divergence.cause if isinstance(divergence, InputDiffers) else None
    # no other recording identifies the tensor
    if accused(divergence).certain or isinstance(cause, OtherTensor):
        return None
    if may_have_other_seeds(runs, divergence):
        return of_one_seed(*runs)
    if isinstance(cause, Host) and cause.made and cause.proven:  # of values that no recording explains
        return None
    if isinstance(divergence, OutputDiffers):
        return of_unwritten(runs[1]) or None if divergence.doubt != "code" else None
    facts = of_facts(*runs)
    return facts or of_unwritten(runs[1]) or None
