"""The records of a comparison: what differs between two runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.compare.cause_kinds import Cause, OperatorCause
from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.compare.signature_pair import SettingChange
from tracing.model import Digest, KernelLaunch

Key: TypeAlias = tuple[object, ...]

_KEYWORD = re.compile(r"(\w+)=(.*?)(?=, \w+=|$)")  # "value=-0.1, alpha=2"


@dataclass(frozen=True, slots=True)
class LaunchPair:
    """One launch in both runs, or in one of them."""

    rank: int
    a: KernelLaunch | None
    b: KernelLaunch | None

    @property
    def launch(self) -> KernelLaunch:
        """Run a's launch, or run b's where a has none."""
        launch = self.a or self.b
        assert launch is not None
        return launch


@dataclass(frozen=True, slots=True)
class LaunchDiffers:
    """The kernel, its code, its configuration or its arguments differ."""

    pair: LaunchPair
    changes: tuple[SettingChange, ...]
    code: CodeDifference | None
    tuned: bool  # an autotuner chose other values for all that differs
    outputs: tuple[str, ...]  # arguments whose contents after the launch differ
    inputs: tuple[str, ...] = ()  # arguments that it reads and whose contents differ

    @property
    def other_kernel(self) -> bool:
        """True if the two runs launched kernels of different names."""
        a, b = self.pair.a, self.pair.b
        return a is not None and b is not None and a.kernel_name != b.kernel_name


@dataclass(frozen=True, slots=True)
class InputDiffers:
    """A kernel read different bits in the two runs."""

    pair: LaunchPair
    position: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class ReadOutside:
    """The launch read memory outside of its arguments, and no digest covers that memory."""

    argument: str  # the nearest argument


@dataclass(frozen=True, slots=True)
class OutputDiffers:
    """A kernel wrote different bits although all its inputs were equal."""

    pair: LaunchPair
    position: int
    doubt: ReadOutside | Literal["", "unwritten", "untouched", "addresses", "code"] = ""
    # "unwritten": the memory held different bits before, and the launch may have left part of it unwritten;
    # "untouched": likewise, and the differing ranges hold what they held before;
    # "addresses": the kernel followed pointers that it loaded, and no digest covers what it read there;
    # "code": the kernel's code cannot be read, and may differ: a run is damaged


@dataclass(frozen=True, slots=True)
class OneSided:
    """Consecutive launches that only one run has."""

    pair: LaunchPair  # the first of them
    count: int
    last: bool  # the other run has ended
    changed: bool  # False: these launches changed no memory


@dataclass(frozen=True, slots=True)
class OrderDiffers:
    """Two launches were reordered although one accesses bytes that the other writes."""

    pair: LaunchPair  # the one that run a made first
    other: LaunchPair
    argument: str  # of the first launch, which shares bytes with the second
    other_argument: str  # of the second launch, which names the same bytes


Divergence: TypeAlias = LaunchDiffers | InputDiffers | OutputDiffers | OneSided | OrderDiffers


def kind_of(divergence: Divergence) -> str:
    """The name of a divergence's kind in tables and JSON."""
    if isinstance(divergence, OneSided):
        return "end" if divergence.last else "missing" if divergence.pair.b is None else "added"
    kinds = {
        LaunchDiffers: "launch", InputDiffers: "input", OutputDiffers: "output", OrderDiffers: "order",
    }  # fmt: skip
    return kinds[type(divergence)]


def argument_of(divergence: Divergence) -> str | None:
    """The argument that differs."""
    if isinstance(divergence, (InputDiffers, OutputDiffers)):
        return divergence.pair.launch.args[divergence.position].name
    return divergence.argument if isinstance(divergence, OrderDiffers) else None


def digests_of(divergence: InputDiffers | OutputDiffers) -> tuple[Digest | None, Digest | None]:
    """The digests that differ, in run a and in run b."""
    assert divergence.pair.a is not None and divergence.pair.b is not None
    a, b = (launch.args[divergence.position] for launch in (divergence.pair.a, divergence.pair.b))
    return (a.before, b.before) if isinstance(divergence, InputDiffers) else (a.after, b.after)


def settings_of(divergence: LaunchDiffers) -> tuple[dict[str, str], dict[str, str]]:
    """The settings that differ, by name, in run a and in run b."""
    a, b = ({one.name: getattr(one, side) for one in divergence.changes} for side in ("a", "b"))
    return a, b


def key_of(divergence: Divergence) -> Key:
    """Equal for divergences that repeat from launch to launch."""
    name, argument = divergence.pair.launch.kernel_name, argument_of(divergence)
    key: Key = (type(divergence), name, argument)
    if isinstance(divergence, LaunchDiffers):
        return (*key, divergence.changes, divergence.code, divergence.outputs)
    if isinstance(divergence, InputDiffers):
        cause = divergence.cause
        if isinstance(cause, OperatorCause) and _is_called_differently(cause):
            # an optimizer calls it for each of its parameters, and a schedule with other values in each step
            return OperatorCause, *cause.names, *_changed_arguments(cause), *cause.sites
        return (*key, type(cause), *_names(cause))
    if isinstance(divergence, OneSided):
        return (*key, divergence.pair.a is None, divergence.last)
    return key


def _is_called_differently(cause: OperatorCause) -> bool:
    (a, b), (of_a, of_b) = cause.names, cause.arguments
    return bool(a and b) and (a != b or of_a != of_b)


def _changed_arguments(cause: OperatorCause) -> Key:
    # the keywords that differ, if the lines are known; else the arguments: another line may change them, too
    if None in cause.sites:
        return cause.arguments
    a, b = (dict(_KEYWORD.findall(text)) for text in cause.arguments)
    return tuple(name for name in a | b if a.get(name) != b.get(name)) or cause.arguments


def _names(cause: Cause) -> Key:
    if isinstance(cause, OperatorCause):
        return (*cause.names, *cause.arguments)
    writer = getattr(cause, "writer", None)
    return (writer.kernel_name, writer.argument) if writer else ()
