"""What a bisection has built and judged, on disk: an interrupted one goes on where it stopped.

    RUN/bisect/builds/<key>/kernel.ttgir, kernel.ptx, ...    or `failure`, why there is nothing
    RUN/bisect/judged/<key>.json

A build's key is made of what was compiled, a judgement's of what was judged and of the judge. Two builds with
the same artefacts are judged once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from tracing.analyze.bisect import Judgement
from tracing.analyze.judge import artefact

Artefacts = Mapping[str, str | bytes]  # by stage


class Judge(Protocol):
    @property
    def key(self) -> Sequence[str]:
        """What tells this judge from others."""

    stages: Sequence[str]  # the artefacts that it looks at

    def __call__(self, folder: Path) -> Judgement:
        """Judge the build in a folder."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of one compile."""

    artefacts: Artefacts
    failure: str = ""  # why there are none
    final: bool = True  # False: it may end otherwise the next time, so it is not kept


@dataclass(frozen=True, slots=True)
class Build:
    """One compile on disk."""

    folder: Path
    failure: str


class Probes:
    """The builds and judgements of one run; `built` and `judged` count what was not known already."""

    def __init__(self, run: Path, judge: Judge) -> None:
        self._folder = run / "bisect"
        self.judge = judge
        self.built = 0
        self.judged = 0

    def build(self, key: Sequence[str], make: Callable[[], Compiled], *, again: bool = False) -> Build:
        """The build of a key, from disk or by `make`; `again`: by `make` in any case."""
        folder = self._folder / "builds" / _digest(key)
        failure = folder / "failure"
        if again or not folder.exists():
            made = make()
            self.built += 1
            if not made.final:
                return Build(folder, made.failure)
            _write(folder, made)
        return Build(folder, failure.read_text() if failure.exists() else "")

    def judgement(self, build: Build, *, again: bool = False) -> Judgement:
        """What the judge says of a build: a failed one cannot be told.

        again -- ask the judge, whatever is known of this build
        """
        if build.failure:
            return Judgement("skip", build.failure)
        return replace(self._known(build, again), where=str(build.folder))

    def _known(self, build: Build, again: bool) -> Judgement:
        path = self._folder / "judged" / f"{self._key(build)}.json"
        if not again and path.exists():
            return msgspec.json.decode(path.read_bytes(), type=Judgement)
        found = self.judge(build.folder)
        self.judged += 1
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(msgspec.json.encode(found))
        partial.replace(path)
        return found

    def _key(self, build: Build) -> str:
        contents = (artefact(build.folder, stage).read_bytes() for stage in self.judge.stages)
        return _digest([*self.judge.key, *(hashlib.blake2b(one).hexdigest() for one in contents)])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.blake2b(msgspec.json.encode(list(parts)), digest_size=8).hexdigest()


def _write(folder: Path, made: Compiled) -> None:
    # whole or not at all; of two processes that build the same the second's stands
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for stage, content in made.artefacts.items():
        artefact(partial, stage).write_bytes(content.encode() if isinstance(content, str) else content)
    if made.failure:
        (partial / "failure").write_text(made.failure)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
