"""What the page asks to be started: a case with its settings, as the words of a command of `tracing`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shlex import join
from typing import Any, Literal

import msgspec

from tracing.errors import Problem
from tracing.program.case import known_cases

_WORD = re.compile(r"[\w.,:+*/-]{0,200}")
_OPTIONS = re.compile(r"([A-Za-z_]\w*=[^\s,]{1,200})(,[A-Za-z_]\w*=[^\s,]{1,200}){0,31}|")
_DEVICES = {
    "auto": ((), {}),
    "virtual": ((), {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
    "cpu": (("--no-virtual-gpu",), {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
}


class CheckedConstraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constraints of `tracing check`; empty: not given."""

    alignment: int | None = None
    dtypes: str = ""  # with commas
    max_memory: str = ""
    layout: Literal["", "contiguous", "channels_last"] = ""
    unsupported: str = ""  # with commas
    accelerator: str = ""

    def words(self) -> Iterator[str]:
        """The options of `tracing check`."""
        if self.alignment is not None:
            yield f"--alignment={self.alignment}"
        single = {"max-memory": self.max_memory, "layout": self.layout, "accelerator": self.accelerator}
        repeated = {"dtype": self.dtypes, "unsupported": self.unsupported}
        for name, value in single.items():
            yield from [f"--{name}={_checked(name, value)}"] if value else []
        for name, values in repeated.items():
            yield from (f"--{name}={_checked(name, one)}" for one in values.split(",") if one.strip())


class CaseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case to be recorded, or to be checked against constraints."""

    case: str
    options: str = ""  # of the case, "width=32,depth=2"
    device: Literal["auto", "virtual", "cpu"] = "auto"
    target: str = ""
    seed: int = 0
    mode: str = ""  # of torch.compile
    judge: bool = False
    constraints: CheckedConstraints | None = None  # None: the case is recorded

    @property
    def variables(self) -> dict[str, str]:
        """Variables of the environment that choose the device."""
        return dict(_DEVICES[self.device][1])

    def words(self, runs: Path) -> list[str]:
        """The words of the command, without `tracing`; raises Problem for a value that is none.

        A shell reads none of them; a value is part of the word of its option, so it is no option itself.
        """
        if self.case not in known_cases():
            raise Problem(f"there is no case {self.case!r}", "the page lists the cases by name")
        if not _OPTIONS.fullmatch(self.options):
            raise Problem(f"{self.options!r} are no options of a case", "write NAME=VALUE,NAME=VALUE")
        case = f"{self.case}:{self.options}" if self.options else self.case
        target = [f"--target={_checked('target', self.target)}"] if self.target else []
        common = [*target, f"--seed={self.seed}", f"--runs={runs}"]
        if self.constraints is not None:
            return ["check", case, *self.constraints.words(), *common]
        mode = [f"--mode={_checked('mode', self.mode)}"] if self.mode else []
        judge = ["--judge"] if self.judge else []
        return ["run", case, *_DEVICES[self.device][0], *mode, *judge, *common]

    def typed(self, runs: Path) -> str:
        """The command for a shell."""
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        return " ".join([*variables, join(["tracing", *self.words(runs)])])


def case_request(body: bytes) -> CaseRequest:
    """The request of a page; raises Problem for anything else."""
    try:
        return msgspec.json.decode(body, type=CaseRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Problem(f"the request is none: {error}") from None


def _checked(name: str, value: str) -> str:
    value = value.strip()
    if not _WORD.fullmatch(value):
        raise Problem(f"{value!r} is no value of --{name}", "use letters, digits and . , : + * / -")
    return value


def cases_json() -> list[dict[str, Any]]:
    """The cases that can be started, each with its options and their defaults."""
    from tracing.program.case import described

    return [{"name": name, "says": described(path)} for name, path in known_cases().items()]
