"""The runs in a folder, and the run that a name selects."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from tracing.errors import Problem
from tracing.model.one_line import one_line
from tracing.model.run_info import LAUNCHLESS
from tracing.store.reader import Run

_DEFAULT = Path("runs")  # the folder of a command without --runs
_LATEST = re.compile(r"latest(?:~(\d{1,4}))?")  # latest~2: the one that is two before the latest
_BEFORE = re.compile(r"(.*?)(?:~(\d{1,4}))?")  # train~2: the one that is two before the newest of train
_STARTED = re.compile(r"-\d{8}-\d{6}(-\d+)?$")  # the end of a run's name
_OF_A_JOB = "-job-"  # as `create` names the run of all ranks
NEW_RECORDINGS = "anew"  # the folder in a run that has new recordings of its program
_DEMO = ("demo-sound", "demo-faulty")  # scripts/demo.py


def recorded(runs: Path) -> list[Path]:
    """The runs below a folder, oldest first."""
    folders = [path.parent for path in runs.glob("*/run.json")]
    return sorted(folders, key=lambda path: _recorded_at(path / "run.json"))


def folder_of_runs(run: Path) -> Path:
    """The folder in which `tracing` finds a run; of a new recording inside a run, that of the outer run."""
    inside = run.parent.name == NEW_RECORDINGS and (run.parents[1] / "run.json").exists()
    return run.parents[2] if inside else run.parent


def open_run(name: str, runs: Path) -> Run:
    """Open a run by path, by name below `runs`, or as "latest"; "latest~1" is the one before it.

    The name of a program or case, `train` or `train.py`, is that of its newest run, and `train~1` of the one
    before it.
    """
    known = recorded(runs)
    if known and (latest := _LATEST.fullmatch(name)):
        return _before_latest(runs, known, int(latest[1] or 0))
    path = runs / name
    if Path(name).exists() or not path.exists():
        path = Path(name)
    if not path.is_dir() and (newest := _newest_of(name, known)):
        return Run(newest)
    if path.exists():
        return Run(path)
    near = near_runs(name, runs)
    require_folder(runs)
    recording = "record it with `make demo`" if name in _DEMO else "record one with `tracing run CASE`"
    remedy = f"nearest: {', '.join(near)}" if near else recording
    raise Problem(
        f"there is no run {one_line(name)}, neither here nor below {runs}",
        f"{remedy}; {listing(runs)}",
    )


def listing(runs: Path) -> str:
    """Text: the command that lists the runs of a folder."""
    below = [] if runs == _DEFAULT else ["--runs", str(runs)]
    return f"list runs with `{shlex.join(['tracing', 'list', *below])}`"


def near_runs(name: str, runs: Path) -> list[str]:
    """The names of at most three runs that a misspelt name or path may mean: alike ones, the newest first."""
    word = Path(name).name
    named = {run.name: _program_of(run.name) for run in reversed(recorded(runs))}
    programs = get_close_matches(_program_of(word), {*named.values()}, n=3, cutoff=0.6)
    begun = [run for run, program in named.items() if run.startswith(word) or program in programs]
    begun = [*get_close_matches(word, ["latest"] * bool(named), cutoff=0.8), *begun]
    return begun[:3] or get_close_matches(word, named, n=3, cutoff=0.5)


def names_program(name: str, runs: Path) -> bool:
    """True if a name is that of a program or case of which a run is recorded."""
    return _newest_of(name, recorded(runs)) is not None


def _newest_of(program: str, known: list[Path]) -> Path | None:
    asked = _BEFORE.fullmatch(Path(program).name)
    if asked is None:
        return None
    name, count = asked[1].removesuffix(".py"), int(asked[2] or 0)
    named = (path for path in reversed(known) if _program_of(path.name) == name)
    runs = (run.path for run in _readable(named) if run.info.command not in LAUNCHLESS)
    return next(islice(runs, count, None), None)


def _program_of(run: str) -> str:
    started = _STARTED.search(run)
    return run[: started.start()] if started else run.rpartition(_OF_A_JOB)[0] or run


def require_folder(runs: Path) -> None:
    """Raise Problem if there is no folder of runs."""
    if not runs.is_dir():
        raise Problem(
            f"there is no folder {runs}, so no run",
            "record a run with `tracing run CASE`, or name the folder: `--runs DIR`",
        )


def is_latest(name: str) -> bool:
    """True if a name means the latest run, or one that is some runs before it."""
    return _LATEST.fullmatch(name) is not None


def _before_latest(runs: Path, known: list[Path], count: int) -> Run:
    # of those that this version reads
    for number, run in enumerate(_readable(reversed(known))):
        if number == count:
            return run
    if count:
        raise Problem(f"there are no {count + 1} runs that can be read", listing(runs))
    return Run(known[-1])


def _readable(paths: Iterator[Path]) -> Iterator[Run]:
    for path in paths:
        with suppress(Problem):
            yield Run(path)


def is_run(name: str, runs: Path) -> bool:
    """True if a name is the path of a run, or its name below `runs`, and not a case."""
    return is_latest(name) or any((folder / "run.json").is_file() for folder in (Path(name), runs / name))


def _recorded_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # deleted since it was listed
        return 0.0
