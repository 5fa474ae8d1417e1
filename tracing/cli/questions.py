"""Which question `tracing compare` is asked, and whether its options go with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

from tracing.errors import Problem
from tracing.report.text import plural

_QUESTIONS = {
    "": "tracing compare RUN RUN",
    "repeat": "tracing compare CASE --repeat 10",
    "replay": "tracing compare RUN RUN --replay",
    "swap": "tracing compare RUN RUN --swap",
    "ranks": "tracing compare RUN --ranks",
}
_GO_WITH: Mapping[str, Sequence[str]] = {
    "fresh_caches": ["repeat"], "deterministic": ["repeat"], "perturb": ["repeat"], "seed": ["repeat"],
    "target": ["repeat"], "anyway": ["", "replay", "swap"], "limit": ["", "replay", "repeat", "ranks"],
    "window": ["", "replay", "repeat"], "times": ["replay"], "fpsan": ["replay"],
    "swap_with": ["swap"], "each_launch": ["swap"], "as_json": [""],
}  # fmt: skip


def question_of(context: typer.Context, names: int) -> str:
    """The question that a command line asks: "repeat", "replay", "swap", "ranks"; "" of two runs.

    names -- how many runs or cases it names

    Raises Problem for two questions, for an option that would do nothing, and for too few names or too many.
    """
    flags = {option.name: option.opts[0] for option in context.command.params if option.name}
    given = [name for name in flags if _is_given(context, name)]
    asked = [name for name in given if name in _QUESTIONS]
    if "fpsan" in given and "replay" not in asked:
        asked.append("replay")
    question, *others = asked or [""]
    if others:
        told = " and ".join(f"--{name}" for name in asked)
        raise Problem(f"{told} are questions of their own", "ask one at a time")
    for name in given:
        _require_fitting(question, name, flags[name])
    _require_names(question, names)
    return question


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _require_fitting(question: str, name: str, flag: str) -> None:
    fitting = _GO_WITH.get(name, [question])
    if question not in fitting:
        those = " or ".join(f"`{_QUESTIONS[one]}`" for one in fitting)
        raise Problem(f"{flag} does nothing in `{_QUESTIONS[question]}`", f"leave it out; it is for {those}")


def _require_names(question: str, names: int) -> None:
    wanted = 1 if question in ("repeat", "ranks") else 2
    if names != wanted:
        noun = "case" if question == "repeat" else "run"
        raise Problem(f"{plural(wanted, noun)} wanted, and {names} named", f"`{_QUESTIONS[question]}`")
