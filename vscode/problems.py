"""Problem matchers for VSCode, which recognise problems in the output of a task.

Commands of this project print a finding with a location on one line, as compilers do:

    path:line: kind: message        path:line:column: kind: message

with a kind of KINDS, a path that is absolute or begins at this project, and line and column from 1. MLIR
prints the same, or the location as loc("path":line:column). torch prints a graph break in several lines,
which are the same from 2.11 to 2.15.
"""

from __future__ import annotations

from typing import Any

KINDS = ("error", "warning", "note", "remark")
FINDING = (
    r'^\s*(?:loc\(")?(?!\d+:)([^\s:"][^:"]*)"?:(\d+)(?::(\d+))?\)?:\s+(' + "|".join(KINDS) + r"):\s+(\S.*)$"
)
BREAK = r"\[__graph_breaks\] Graph break (?:\(.*\) )?in user code at (.+):(\d+)$"
GENERAL = "Encountered graph break when attempting to trace"  # gives no reason; the reason is two lines below


def findings(root: str) -> list[dict[str, Any]]:
    """Matchers of a task that runs one of our commands.

    root -- where relative paths begin
    """
    groups = {"file": 1, "line": 2, "column": 3, "severity": 4, "message": 5}
    return [_matcher("tracing", root, "info", [{"regexp": FINDING, **groups}])]


def graph_breaks(root: str) -> list[dict[str, Any]]:
    """Matchers of a task that runs torch with TORCH_LOGS=graph_breaks; arguments as of `findings`."""
    first: dict[str, Any] = {"regexp": BREAK, "file": 1, "line": 2}
    reason: dict[str, Any] = {"regexp": rf"Graph Break Reason: (?!{GENERAL})(\S.*)$", "message": 1}
    general: list[dict[str, Any]] = [
        {"regexp": f"Graph Break Reason: {GENERAL}"},
        {"regexp": r"\[__graph_breaks\]\s*$"},
        {"regexp": r"\[__graph_breaks\]\s+(\S.*)$", "message": 1},
    ]
    return [
        _matcher("torch: graph break", root, "warning", lines)
        for lines in ([first, reason], [first, *general])
    ]


def _matcher(source: str, root: str, severity: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    # the severity is that of a line which names none, or one that VSCode does not know
    matcher = {"owner": source.partition(":")[0], "source": source, "fileLocation": ["autoDetect", root]}
    return {**matcher, "severity": severity, "pattern": lines}
