"""Judge a build by a user's command.

The command's exit status is read as by `git bisect run`: 0 is good, 125 cannot be judged, 1 to 127 are bad,
and a higher status ends the search. A build cannot be judged either if the status is 124, the timeout of
timeout(1), or if the command exceeds its time limit. `{ptx}`, `{cubin}`, ... in its arguments become the
paths of the build's artefacts.

`{ir}` becomes the path of the IR to judge: the artefact of a build that left out passes of LLVM, or the IR
between two passes of a compilation, in its language at that point. `{stage}` names that language.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tracing.analyze.bisect.search import Judgement
from tracing.errors import Problem

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")  # in the order of compilation
TEXTS = [stage for stage in STAGES if stage not in ("cubin", "hsaco")]
# languages of IR that no stage ends with
MLIR, MACHINE = "mlir", "mir"  # of MLIR's LLVM dialect, before LLVM; LLVM's machine code
_PLACEHOLDER = re.compile("{(" + "|".join((*STAGES, "dir", "ir", "stage")) + ")}")
_QUOTED = re.compile(r"[^\s\"'=:;|&<>(){}]+")  # a path inside a word


def artefact(folder: Path, stage: str) -> Path:
    """The path of one stage's artefact in the folder of a build."""
    return folder / f"kernel.{stage}"


class CommandJudge:
    """A command that looks at artefacts."""

    def __init__(self, command: Sequence[str], stages: Iterable[str], seconds: float) -> None:
        """Judge by the exit status of `command`.

        stages  -- what the kernel is compiled to, in order
        seconds -- after which the command, and what it started, is killed

        Raises Problem if the command names no artefact, or one that this kernel does not have.
        """
        known = list(stages)
        named = {name for word in command for name in _PLACEHOLDER.findall(word)} - {"stage"}
        if not named:
            raise Problem(
                "the command names none of the kernel's artefacts, so it would judge all builds alike",
                f"give it one by {', '.join(f'{{{stage}}}' for stage in known)}, all by {{dir}}, "
                "or whatever there is by {ir}",
            )
        if missing := sorted(named - {"dir", "ir", *known}):
            raise Problem(f"this kernel has no {', '.join(missing)}", f"it has {', '.join(known)}")
        if "ir" in named and len(named) > 1:
            others = ", ".join(f"{{{name}}}" for name in sorted(named - {"ir"}))
            raise Problem(f"{{ir}} stands for every artefact: next to it there is no {others}")
        self.command = tuple(command)
        self.stages: Sequence[str] = [stage for stage in known if stage in named or "dir" in named]
        if "ir" in named:
            self.stages = [[stage for stage in known if stage in TEXTS][-1]]
        self.languages = self._languages(named)
        self.seconds = seconds

    def _languages(self, named: set[str]) -> Sequence[str]:
        # languages of IR between passes that the command accepts instead of an artefact
        if named == {"ir"}:
            return [*TEXTS, MLIR, MACHINE]
        return list(named) if named <= {"ttir", "ttgir", "llir"} and len(named) == 1 else []

    @property
    def key(self) -> Sequence[str]:
        """The identity of this judge: its arguments, and the content of the files that they name."""
        return [*self.command, *map(_content, dict.fromkeys(_files(self.command)))]

    def words(self, folder: Path) -> list[str]:
        """The command for the build in a folder."""
        present = next(
            (stage for stage in (*self.stages, *self.languages) if artefact(folder, stage).exists()), ""
        )

        def path(match: re.Match[str]) -> str:
            name = match.group(1)
            if name == "stage":
                return present
            return str(folder if name == "dir" else artefact(folder, present if name == "ir" else name))

        return [_PLACEHOLDER.sub(path, word) for word in self.command]

    def __call__(self, folder: Path) -> Judgement:
        """Run the command for one build; raises Problem if it cannot be run, or asks to end the search."""
        words = self.words(folder)
        status, output = run_command(words, self.seconds)
        if status is None:
            return Judgement("skip", f"the command did not end within {self.seconds:g} s", final=False)
        lines = output.strip().splitlines()
        detail = f"exit status {status}" + (f": {lines[-1].strip()}" if lines else "")
        if status >= 128:
            raise Problem(
                f"the command ended the search with {detail}",
                "all judgements are kept: the same `tracing bisect` continues from there",
            )
        if status == 124:
            return Judgement("skip", detail, final=False)
        return Judgement("good" if status == 0 else "skip" if status == 125 else "bad", detail)


def run_command(words: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """The exit status of a command, or None after the time limit, and its output.

    All processes that it started are killed when it ends or times out. Raises Problem if it cannot be run.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        except OSError as error:
            raise Problem(f"cannot run {words[0]}: {error.strerror}") from None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # ends background processes of the command, too
            process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return (128 - status if status is not None and status < 0 else status), text


def _files(command: Sequence[str]) -> Iterator[Path]:
    # the command itself, the files among its words, and those inside of words: sh -c "python x.py {ptx}"
    for word in command:
        for part in (word, *_QUOTED.findall(word)):
            where = part if os.sep in part else shutil.which(part) or part
            for path in (part, where):
                if len(path) < 4096 and os.path.isfile(path):  # noqa: PTH113  # Path raises for a long name
                    yield Path(path)


def _content(path: Path) -> str:
    digest = hashlib.blake2b()
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        return f"{path} cannot be read"
    return f"{path} {digest.hexdigest()}"
