"""Remove names of persons, machines and folders from rows of tables, so that the tables can be published.

Names of runs become those of their cases with a number; paths become PATH, hosts HOST, users USER. No table
holds source code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracing.model import RunInfo
from tracing.model.redaction import redacted_text
from tracing.store import Run

_HOME = re.compile(r"/(?:home|Users)/([^/\s]+)")
_ONLY_PATH = re.compile(r"(?:\A|(?<=['\"]))(?:~|\.\.?)?/[^'\"]*(?:(?=['\"])|\Z)")  # also with spaces
_PATH = re.compile(r"(?<![\w)/.~])(?:~|\.\.?)?(?:/[^/\s:;,'\"()\[\]{}=]+)+")


class Anonymous:
    """Replaces names in rows of the tables of some runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = {
            run.name: f"{re.split('[+:]', run.info.case)[0]}-{number}" for number, run in enumerate(runs, 1)
        }
        hosts = {host for run in runs for host in _hosts(run)}
        users = {user for run in runs for text in _texts(run.info) for user in _HOME.findall(text)}
        self._words = {"HOST": _any_of(hosts), "USER": _any_of(users)}

    def row(self, row: Mapping[str, object]) -> dict[str, object]:
        """A row with other names; its columns are the same."""
        return {column: self._value(value) for column, value in row.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._value(name): self._value(one) for name, one in value.items()}
        return [self._value(one) for one in value] if isinstance(value, (list, tuple)) else value

    def _text(self, text: str) -> str:
        if text in self._runs:
            return self._runs[text]
        text = _PATH.sub("PATH", _ONLY_PATH.sub("PATH", redacted_text(text)))
        for name, words in self._words.items():
            text = words.sub(name, text)
        return text


def _texts(info: RunInfo) -> Iterator[str]:
    yield from (info.path, info.case, *info.argv, *info.environment.knobs.values())


def _hosts(run: Run) -> Iterator[str]:
    yield run.info.environment.host
    for process in run.processes():  # -HOST-RANK-PID
        yield process.removeprefix("-").rsplit("-", 2)[0]


def _any_of(words: set[str]) -> re.Pattern[str]:
    listed = "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)" if listed else r"(?!)")
