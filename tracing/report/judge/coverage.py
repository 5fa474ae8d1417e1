"""How many launches of a judgement are right, and what has no reference, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracing.analyze.judge.findings import Overwritten
from tracing.analyze.judge.judgement import RunJudgement
from tracing.model.first_names import first_names
from tracing.report.text import plural

_LISTED = 5  # launches, or parts of a graph, that are listed for one reason
_BECAUSE = ": no reference, because "


def coverage_text(judgement: RunJudgement) -> Iterator[str]:
    """The counts, and a line for each reason for which something has no reference."""
    count = Counter(one.verdict for one in judgement.launches)
    judged = sum(count.values()) - count["no reference"]
    misread = any(isinstance(one, Overwritten) and one.kernels[0] for one in judgement.findings)
    read = "it reads" if count["right"] == 1 else "they read"
    right = f"right for what {read}" if misread else "right"
    partly = [one for one in judgement.launches if one.partly]
    whole = count["right"] - len(partly)
    parts = [f"{whole} {right}"] if whole else []
    parts += [f"{len(partly)} {right} in part"] if partly else []
    parts += [f"{count['off']} off"] if count["off"] else []
    if count["inputs wrong"]:
        parts.append(f"{count['inputs wrong']} right, with inputs that were wrong already")
    of = plural(len(judgement.launches), "launch")
    yield f"{judged} of {of} judged{': ' + ', '.join(parts) if parts else ''}"
    reasons: dict[str, list[str]] = {}
    for one in judgement.launches:
        if one.verdict == "no reference":
            reasons.setdefault(one.why, []).append(f"{one.launch} {one.kernel}")
    for why, launches in reasons.items():
        yield f"not covered: launch {first_names(launches, _LISTED)}{_BECAUSE}{why}"
    unjudged = ((first_names(one.unjudged), one) for one in partly)
    yield from _not_covered(
        [f"{names} of launch {one.launch} {one.kernel}{_BECAUSE}{one.why}" for names, one in unjudged]
    )
    yield from _not_covered(judgement.not_covered)


def _not_covered(texts: Sequence[str]) -> Iterator[str]:
    # what one reason leaves out is one line
    reasons: dict[str, list[str]] = {}
    for text in texts:
        what, _, why = text.partition(_BECAUSE)
        reasons.setdefault(why, []).append(what)
    for why, parts in reasons.items():
        if why:
            yield f"not covered: {first_names(parts, _LISTED)}{_BECAUSE}{why}"
        else:
            yield from (f"not covered: {part}" for part in parts)
