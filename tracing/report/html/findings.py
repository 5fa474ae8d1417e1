"""The findings at the top of a report: the culprits that the analyses name, the most certain one first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracing.report.compare.comparison_json import accused_text
from tracing.report.nonfinite import verb_text

Data = Mapping[str, Any]  # a part of the report's index

BAD, DOUBT, FINE = "bad", "doubt", "fine"
_LINES = 8  # of a command's answer
_ADVICE = ("check", "guards")  # a violated constraint or a graph break makes no result wrong


def findings(runs: Sequence[Data], comparison: Data | None) -> list[dict[str, Any]]:
    """Every finding, the bad ones first, with what to look at and the commands to type next."""
    known = list(_of_comparison(comparison)) if comparison else []
    known += _of_kernels(comparison, runs[1]) if comparison else []
    for number, run in enumerate(runs):
        side = f"{'ab'[number]}: " if len(runs) > 1 else ""
        known += [{**one, "title": side + one["title"]} for one in _of_run(number, run)]
    known.sort(key=lambda one: (BAD, DOUBT, FINE).index(one["tone"]))
    return known or [finding(FINE, "nothing was found", _equal(comparison), _searches(runs))]


def _searches(runs: Sequence[Data]) -> list[str]:
    # of one run, what was not asked yet
    asked = {one["name"] for one in runs[0]["answers"]}
    return [] if len(runs) > 1 else [one for one in runs[0]["next"] if not asked & {*one.split()[:2]}]


def finding(
    tone: str,
    title: str,
    lines: Sequence[str] = (),
    commands: Sequence[str] = (),
    launch: tuple[int, int, int] | None = None,  # run, rank, index
    kernel: tuple[int, int] | None = None,  # run, position among its kernels
    divergence: int | None = None,
    answer: tuple[int, int] | None = None,  # run, number
) -> dict[str, Any]:
    """One finding of the first screen."""
    return {
        "tone": tone, "title": title, "lines": [line for line in lines if line], "next": list(commands),
        "launch": launch, "kernel": kernel, "divergence": divergence,
        "answer": answer,
    }  # fmt: skip


def _equal(comparison: Data | None) -> list[str]:
    return (
        list(comparison["summary"]) if comparison else ["every recorded value is finite, and nothing failed"]
    )


# ---- of two runs


def _of_comparison(comparison: Data) -> Iterator[dict[str, Any]]:
    for one in comparison["start"]:
        yield finding(BAD, f"{one['name']} differs before the first launch", [f"{one['a']} | {one['b']}"])
    for number, one in enumerate(comparison["divergences"][:3]):
        title = ("first divergence: " if number == 0 else "another divergence: ") + one["title"]
        yield finding(
            BAD,
            title,
            [_accused(one["accused"]), _argument(one), *one["evidence"]],
            one["next"],
            _launch(one),
            None,
            number,
        )
    for one in comparison["outcomes"]:
        yield finding(BAD, f"{one['name']} ends differently", [f"{one['a']} | {one['b']}"])
    if comparison["results"] and not comparison["divergences"]:
        names = ", ".join(one["name"] for one in comparison["results"][:5])
        yield finding(BAD, f"results differ: {names}", comparison["summary"])
    if comparison["status"] == 2:
        why = comparison["not_compared"] or comparison["summary"]
        yield finding(DOUBT, "the runs could be compared in part only", why)


def _of_kernels(comparison: Data, run: Data) -> Iterator[dict[str, Any]]:
    # of run b: the compiler left another IR
    positions = {one["hash"]: position for position, one in enumerate(run["kernels"])}
    differing = [one for one in comparison["kernels"] if one["known"] and not one["equal"]]
    for one in differing[:3]:
        at = positions[one["b"]]
        title = f"the compiler's IR of {run['kernels'][at]['label']} differs"
        yield finding(DOUBT, title, [one["verdict"]], kernel=(1, at))


def _accused(one: Data) -> str:
    return f"accused: {accused_text(one)}" + ("" if one["certain"] else " (not certain)")


def _argument(one: Data) -> str:
    if one["argument"] is None:
        return ""
    return f"{one['kind']} {one['argument']} {one['elements']}".strip()


def _launch(one: Data) -> tuple[int, int, int] | None:
    index = one["launch"]
    if index["b"] is not None:
        return 1, one["rank"], index["b"]
    return None if index["a"] is None else (0, one["rank"], index["a"])


# ---- of one run


def _of_answers(number: int, run: Data, *, advice: bool) -> Iterator[dict[str, Any]]:
    # of each command about each kernel the latest answer that accuses something, or else the latest one:
    # a run does not change, so what was good later was asked otherwise. Earlier ones are in the list of all
    shown: dict[tuple[str, str], int] = {}
    for position, one in enumerate(run["answers"]):
        earlier = shown.get((one["name"], one["kernel"]))
        if earlier is None or one["status"] == 1 or run["answers"][earlier]["status"] != 1:
            shown[one["name"], one["kernel"]] = position
    for position in shown.values():
        one = run["answers"][position]
        if one["status"] and (one["name"] in _ADVICE) is advice:
            tone = BAD if one["status"] == 1 and not advice else DOUBT
            lines = [line for line in one["lines"] if line.strip()]
            title = f"{one['name']}: {lines[0].lstrip('✗ ') if lines else 'no answer'}"
            launch = None if one["launch"] is None else (number, one["rank"], one["launch"])
            excerpt = _marked(lines) if advice else lines[_end(lines) :]
            yield finding(tone, title, excerpt[: _LINES - 1], one["next"], launch, answer=(number, position))


def _marked(lines: Sequence[str]) -> list[str]:
    # violations and graph breaks: not guards and not what is supported
    return [line.strip() for line in lines[1:] if line.strip().startswith(("✗", "?"))]


def _end(lines: Sequence[str]) -> int:
    # `swap` lists what it can replace before what is to blame
    return max((n for n, line in enumerate(lines) if line.startswith("to blame:")), default=0) + 1


def _of_run(number: int, run: Data) -> Iterator[dict[str, Any]]:
    yield from _of_answers(number, run, advice=False)
    yield from _of_damage(number, run)
    for position, kernel in enumerate(run["kernels"]):
        if kernel["died"]:
            yield finding(
                BAD, f"pass {kernel['died']} of {kernel['label']} did not end", [], kernel["next"],
                kernel=(number, position),
            )  # fmt: skip
    for one in run["failures"]:
        excerpt = [one["reason"], one["python"], one["code"], *one["source"]]
        yield finding(BAD, f"{one['kind']} failed: {one['name']}", excerpt)
    for one in run["outcomes"]:
        if one["status"] in ("failed", "interrupted"):
            yield finding(BAD, f"the program {one['status']}", [one["detail"]])
        elif one["status"] == "out of bounds":
            yield finding(BAD, "a kernel accesses memory outside of its arguments", [one["detail"]])
        elif one["status"] == "not decided":
            yield finding(DOUBT, "exact arithmetic does not decide which result is wrong", [one["detail"]])
        elif one["status"] == "differs":
            judged = any(each["name"] == "judge" for each in run["answers"])
            commands = [each for each in run["next"] if not (judged and "tracing judge " in each)]
            yield finding(BAD, "the results differ from eager", [one["detail"]], commands)
    if run["growing"]:
        yield finding(FINE, "the run is still being recorded")
    elif not run["outcomes"]:
        yield finding(DOUBT, "the run did not end: it was killed")
    yield from _of_values(number, run)
    yield from _of_answers(number, run, advice=True)
    if run["violations"] and not any(one["name"] == "check" for one in run["answers"]):
        first = run["violations"][0]
        count = len(run["violations"])
        what = f"{first['node']} ({first['operator']}): {first['found']}; needed: {first['required']}"
        yield finding(DOUBT, f"constraints are violated: {count}", [what, first["python"]])
    for text in run["cut"]:
        yield finding(DOUBT, text)


def _of_damage(number: int, run: Data) -> Iterator[dict[str, Any]]:
    unread = [position for position, kernel in enumerate(run["kernels"]) if kernel["unread"]]
    if unread:
        title = (
            f"the run is damaged: the code of {len(unread)} of {len(run['kernels'])} kernels cannot be read"
        )
        yield finding(BAD, title, [run["kernels"][unread[0]]["unread"]], kernel=(number, unread[0]))


def _of_values(number: int, run: Data) -> Iterator[dict[str, Any]]:
    origin = run["nan"]["origin"]
    if origin is not None:
        does = verb_text(run["nan"]["verb"])
        index = f"#{origin['index']} " if origin["kind"] == "launch" else ""
        launch = (number, origin["rank"], origin["index"]) if index else None
        tensors = [f"{one['name']}: {one['nan']} NaN, {one['inf']} inf" for one in run["nan"]["tensors"][:4]]
        title = f"{origin['kind']} {index}{origin['name']} {does} {run['nan']['first']}"
        yield finding(DOUBT, title, [*tensors, origin["site"] or ""], run["nan"]["next"], launch)
    if (later := run["nan"]["later"]) is not None:
        index = f"#{later['index']} " if later["kind"] == "launch" else ""
        launch = (number, later["rank"], later["index"]) if index else None
        title = f"{later['kind']} {index}{later['name']} makes NaN or inf of finite values"
        yield finding(DOUBT, title, [later["site"] or ""], run["nan"]["next"], launch)
    for one in run["evidence"][:3]:
        launch = (number, one["rank"], one["launch"])
        yield finding(DOUBT, f"memory evidence at launch #{one['launch']}", [one["text"]], (), launch)
    if any(not one["agreed"] for one in run["winners"]):
        yield finding(DOUBT, "autotuners of different ranks chose different configurations")
