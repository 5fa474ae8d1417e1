"""Cache the builds and judgements of a bisection on disk, so that an interrupted search can be resumed.

    RUN/bisect/builds/<key>/kernel.ttgir, kernel.ptx, ...    or `failure`, why there is nothing
    RUN/bisect/judged/<key>.json

A build's key consists of the compiled kernel and the compiler, a judgement's key of the build's artefacts and
the judge. Two builds with equal artefacts are judged once. Confirmations are built and judged anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from tracing.analyze.bisect.judge import artefact
from tracing.analyze.bisect.search import JudgeAnswer, Judgement

Artefacts = Mapping[str, str | bytes]  # by stage
CONFIRMATIONS = 3  # calls of a judge that confirm a judgement: a flaky judge seldom agrees by chance


class Judge(Protocol):
    @property
    def key(self) -> Sequence[str]:
        """The identity of this judge."""

    stages: Sequence[str]  # the artefacts that the judge reads

    def __call__(self, folder: Path) -> Judgement:
        """Judge the build in a folder."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The outcome of one compile."""

    artefacts: Artefacts
    failure: str = ""  # the reason why there are none
    final: bool = True  # False: a repetition may end differently, so the result is not kept


@dataclass(frozen=True, slots=True)
class Build:
    """One compile on disk."""

    folder: Path
    failure: str


class Probes:
    """The builds and judgements of one run; `built` and `judged` count those that were not cached."""

    def __init__(
        self, run: Path, judge: Judge, compiler: Sequence[str] = (), *, times: int = CONFIRMATIONS
    ) -> None:
        """Keep them below `run`.

        compiler -- identifies the compiler, so that the builds of another one are not reused
        times    -- how often the judge is called to confirm a judgement
        """
        self._times = times
        self._folder = run / "bisect"
        self.reused = False  # True: a build or judgement of an earlier search was read
        self._own: set[Path] = set()  # builds and judgements of this search
        self._compiler = compiler
        self.judge = judge
        self.built = 0
        self.judged = 0
        self.known = 0  # builds and judgements that were read from disk
        self.verdicts: Counter[JudgeAnswer] = Counter()

    def forget(self) -> None:
        """Clear the cache."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def build(self, key: Sequence[str], make: Callable[[], Compiled], *, anew: bool = False) -> Build:
        """The build of a key, from disk or by `make`; `anew`: by `make` in any case."""
        folder = self._folder / "builds" / _digest([*self._compiler, *key])
        failure = folder / "failure"
        if anew or not folder.exists():
            made = make()
            self.built += 1
            if not made.final:
                return Build(folder, made.failure)
            _write(folder, made)
            self._own.add(folder)
        else:
            self._read(folder)
        return Build(folder, failure.read_text() if failure.exists() else "")

    def judgement(self, build: Build, *, anew: bool = False) -> Judgement:
        """The judgement of a build; a failed build cannot be judged.

        With `anew`, the judge is called several times, ignoring cached judgements.
        """
        if build.failure:
            return Judgement("skip", build.failure)
        judgement = self._anew(build) if anew else self._known(build)
        self.verdicts[judgement.verdict] += 1
        return replace(judgement, where=str(build.folder))

    def _read(self, path: Path) -> None:
        self.known += 1
        self.reused |= path not in self._own

    def _known(self, build: Build) -> Judgement:
        path = self._path(build)
        if path.exists():
            self._read(path)
            return msgspec.json.decode(path.read_bytes(), type=Judgement)
        judgement = self._asked(build)
        self._keep(path, judgement)
        return judgement

    def _anew(self, build: Build) -> Judgement:
        judgements = [self._asked(build)]
        while len(judgements) < self._times and judgements[-1].final:
            judgements.append(self._asked(build))
        counts = Counter(one.verdict for one in judgements)
        if len(counts) > 1:
            counted = " and ".join(f"{verdict} {times} times" for verdict, times in counts.items())
            return Judgement("skip", f"the judge said {counted} of one build", final=False)
        self._keep(self._path(build), judgements[0])
        return judgements[0]

    def _asked(self, build: Build) -> Judgement:
        self.judged += 1
        return self.judge(build.folder)

    def _keep(self, path: Path, judgement: Judgement) -> None:
        if judgement.final:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(msgspec.json.encode(judgement))
            partial.replace(path)
            self._own.add(path)

    def _path(self, build: Build) -> Path:
        files = [path for stage in self.judge.stages if (path := artefact(build.folder, stage)).exists()]
        files = files or sorted(build.folder.glob(artefact(Path(), "*").name))  # only IR between passes
        contents = (hashlib.blake2b(path.read_bytes()).hexdigest() for path in files)
        key = _digest([*self.judge.key, *(path.name for path in files), *contents])
        return self._folder / "judged" / f"{key}.json"


def _digest(parts: Sequence[str]) -> str:
    return hashlib.blake2b(msgspec.json.encode(list(parts)), digest_size=8).hexdigest()


def _write(folder: Path, made: Compiled) -> None:
    # written atomically; if two processes have the same build, that of the second is kept
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for stage, content in made.artefacts.items():
        artefact(partial, stage).write_bytes(content.encode() if isinstance(content, str) else content)
    if made.failure:
        (partial / "failure").write_text(made.failure)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
