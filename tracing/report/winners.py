"""The choices of autotuners, for a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.text import Text

from tracing.analyze.runs.winners import Choice
from tracing.model import Winner
from tracing.report.text import Line, plural

_TUNERS = {"triton": "@triton.autotune", "inductor": "Inductor"}


def choice_text(choice: Choice, ranks: Sequence[int]) -> Iterator[Line]:
    """One kernel and tuning key, and the choice of each rank; `ranks` are all with a choice."""
    first = choice.first
    yield Text.assemble((first.kernel, "bold"), f"  {_TUNERS[first.tuner]}, source {first.source[:12]}")
    yield f"    key       {', '.join(first.key) or 'none'}"
    by_config: dict[str, list[tuple[int, Winner]]] = defaultdict(list)
    for rank, winners in sorted(choice.by_rank.items()):
        for one in winners:
            by_config[config_text(one)].append((rank, one))
    for config, chosen in by_config.items():
        mark = Text("  ") if choice.agreed else Text.assemble(("✗", "red"), " ")
        how = ", ".join(dict.fromkeys(_how(one) for _, one in chosen))
        who = f"{ranks_text([rank for rank, _ in chosen])}: " if len(ranks) > 1 else ""
        yield Text.assemble("  ", mark, f"{who}{config}  ({how})")
    if absent := [rank for rank in ranks if rank not in choice.by_rank]:
        yield f"    {ranks_text(absent)}: did not tune it"


def config_text(winner: Winner) -> str:
    """`BLOCK=1024 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in winner.config.items())


def _how(winner: Winner) -> str:
    if winner.how == "frozen":
        return "frozen"
    if winner.how == "cached":
        return "tuned before"
    among = winner.config in winner.candidates
    return f"{'of' if among else 'refined from'} {plural(len(winner.candidates), 'candidate')}"


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    stretches: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if stretches and stretches[-1][-1] == rank - 1:
            stretches[-1].append(rank)
        else:
            stretches.append([rank])
    texts = [f"{one[0]}-{one[-1]}" if len(one) > 1 else str(one[0]) for one in stretches]
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {', '.join(texts)}"
