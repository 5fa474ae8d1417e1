"""Whether a build is good: a command of the user's says so.

Its exit status is read as by `git bisect run`: 0 is good, 125 cannot be told, 1 to 127 are bad, and what is
above ends the search. `{ptx}`, `{cubin}`, ... in its words become the paths of the build's artefacts.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tracing.analyze.bisect import Judgement
from tracing.errors import Problem

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")  # in the order of compilation
_PLACEHOLDER = re.compile("{(" + "|".join((*STAGES, "dir")) + ")}")


def artefact(folder: Path, stage: str) -> Path:
    """Where the artefact of one stage lies in the folder of a build."""
    return folder / f"kernel.{stage}"


class CommandJudge:
    """A command that looks at artefacts."""

    def __init__(self, command: Sequence[str], stages: Iterable[str]) -> None:
        """Judge by the exit status of `command`.

        stages -- what the kernel is compiled to, in order

        Raises Problem if the command names no artefact, or one that this kernel does not have.
        """
        known = list(stages)
        named = {name for word in command for name in _PLACEHOLDER.findall(word)}
        if not named:
            raise Problem(
                "the command names none of the kernel's artefacts, so it would say the same of each build",
                f"give it one by {', '.join(f'{{{stage}}}' for stage in known)}, or all by {{dir}}",
            )
        if missing := sorted(named - {"dir", *known}):
            raise Problem(f"this kernel has no {', '.join(missing)}", f"it has {', '.join(known)}")
        self.command = tuple(command)
        self.stages: Sequence[str] = [stage for stage in known if stage in named or "dir" in named]
        # Path.is_file raises where a word is longer than a file's name may be
        files = [Path(word) for word in command if os.path.isfile(word)]  # noqa: PTH113
        self._files = [hashlib.blake2b(file.read_bytes()).hexdigest() for file in files]

    @property
    def key(self) -> Sequence[str]:
        """What tells this judge from others: its words, and the content of the files among them."""
        return [*self.command, *self._files]

    def words(self, folder: Path) -> list[str]:
        """The command for the build in a folder."""

        def path(match: re.Match[str]) -> str:
            name = match.group(1)
            return str(folder if name == "dir" else artefact(folder, name))

        return [_PLACEHOLDER.sub(path, word) for word in self.command]

    def __call__(self, folder: Path) -> Judgement:
        """Run the command for one build; raises Problem if it cannot be run, or asks to end the search."""
        words = self.words(folder)
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except OSError as error:
            raise Problem(f"cannot run {words[0]}: {error.strerror}") from None
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        detail = f"exit status {status}" + (f": {lines[-1].strip()}" if lines else "")
        if status >= 128:
            raise Problem(
                f"the command ended the search with {detail}",
                "what was judged so far is kept: the same `tracing bisect` goes on from there",
            )
        return Judgement("good" if status == 0 else "skip" if status == 125 else "bad", detail)
