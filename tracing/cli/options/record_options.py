"""The options of `tracing run`, and the recorder settings that they select."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tracing.cli.options.named import RecordSeedOption, TargetOption
from tracing.cli.options.size import size, size_text
from tracing.errors import Problem
from tracing.model import KEPT_IN_MEMORY, KEPT_ON_DISK, Selection
from tracing.model.chips import DEFAULT_TARGET

if TYPE_CHECKING:
    from tracing.record.outputs import Keep
    from tracing.record.passes.recording import PassIRWhen


class DigestsOption(str, Enum):
    """The tensors whose digests are computed."""

    all = "all"
    declared = "declared"
    none = "none"


class OperatorsOption(str, Enum):
    """What to record of operators outside of Triton."""

    digests = "digests"
    writers = "writers"
    none = "none"


class PhaseOption(str, Enum):
    """When a kernel is launched."""

    forward = "forward"
    backward = "backward"


class PassIROption(str, Enum):
    """When the IR between passes is printed."""

    after = "after"
    during = "during"


class SpillOption(str, Enum):
    """The kept tensors that are written to disk first."""

    oldest = "oldest"
    largest = "largest"


# of torch.compile with Inductor, in any supported torch: a test compares them with torch's own list
MODES = ("default", "lite", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead")


def _known_mode(mode: str) -> str:
    if mode and mode not in MODES:
        raise typer.BadParameter(f"torch.compile has no mode {mode!r}; known are {', '.join(MODES)}")
    return mode


@dataclass(frozen=True)
class RecordOptions:
    """The facts that `tracing run` records of a case, and its checks."""

    target: TargetOption = DEFAULT_TARGET
    seed: RecordSeedOption = None
    mode: Annotated[
        str,
        typer.Option(
            callback=_known_mode,
            help="Compile a case in this mode of torch.compile: max-autotune, reduce-overhead.",
        ),
    ] = ""
    no_virtual_gpu: Annotated[
        bool,
        typer.Option(
            "--no-virtual-gpu",
            help="Do not emulate a GPU: Inductor compiles C++ for tensors on the CPU.",
        ),
    ] = False
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Raise errors of the recorder in the program. Default: the program continues unrecorded.",
        ),
    ] = False
    digests: Annotated[
        DigestsOption,
        typer.Option(
            help="all: every tensor before a launch, and what it may write after it; on a GPU not "
            "before it is overwritten as a whole. "
            "declared: what the kernel reads before and writes after. none: launches only."
        ),
    ] = DigestsOption.all
    operators: Annotated[
        OperatorsOption,
        typer.Option(
            help="Of operators outside of Triton. writers: what each read, wrote and allocated. "
            "digests: the bits of it, too; waits for the device. none: nothing. `show --operators` lists."
        ),
    ] = OperatorsOption.writers
    allow_out_of_bounds: Annotated[
        bool,
        typer.Option(
            "--allow-out-of-bounds",
            help="Without a GPU: do not stop kernels that access memory out of bounds. Such an access "
            "happens in the storage of another tensor; elsewhere a load gives 0, and a store does nothing.",
        ),
    ] = False
    kernel: Annotated[list[str] | None, typer.Option(help="Record kernels of this name; a glob.")] = None
    launches: Annotated[str, typer.Option(help="Record these launches, START:STOP.")] = ":"
    phase: Annotated[list[PhaseOption] | None, typer.Option(help="Record launches of this phase.")] = None
    rank: Annotated[list[int] | None, typer.Option(help="Record launches of this rank.")] = None
    rank_aware: Annotated[
        bool, typer.Option("--rank-aware", help="Under torchrun: one run for all ranks of the job.")
    ] = False
    winners: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Autotuned kernels take these configurations; `tracing winners` writes it."
        ),
    ] = None
    keep_outputs: Annotated[
        bool, typer.Option("--keep-outputs", help="Keep what each launch wrote, as safetensors.")
    ] = False
    keep_inputs: Annotated[
        bool,
        typer.Option(
            "--keep-inputs",
            help="Keep what each launch read, too; with --operators digests what operators read, as well.",
        ),
    ] = False
    keep_memory: Annotated[
        int,
        typer.Option(
            parser=size,
            metavar="SIZE",
            show_default=False,
            help=f"Memory for kept tensors: 2GB, 512MiB. Default: {size_text(KEPT_IN_MEMORY)}.",
        ),
    ] = KEPT_IN_MEMORY
    keep_disk: Annotated[
        int,
        typer.Option(
            parser=size,
            metavar="SIZE",
            show_default=False,
            help=f"Disk for kept tensors. Default: {size_text(KEPT_ON_DISK)}.",
        ),
    ] = KEPT_ON_DISK
    keep_spill: Annotated[SpillOption, typer.Option(help="Tensors that leave memory first.")] = (
        SpillOption.oldest
    )
    time_launches: Annotated[
        bool, typer.Option("--time", help="Measure the time of each launch, on the host and on a GPU.")
    ] = False
    hash_fn: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="Record the result of this function for each tensor: number, string, bool or None.",
        ),
    ] = None
    passes: Annotated[
        bool,
        typer.Option("--passes/--no-passes", help="Record every compiler pass of every kernel compiled."),
    ] = True
    ir: Annotated[
        PassIROption,
        typer.Option(
            help="IR around each pass. after: the compilations run once more, when the case has ended, and "
            "are checked against its artefacts. during: printed as passes run; compiling takes 1.4-2.2x."
        ),
    ] = PassIROption.after
    graph_passes: Annotated[
        bool,
        typer.Option(
            "--graph-passes", help="Record every graph of torch.compile after each pass of Inductor."
        ),
    ] = False
    compile_only: Annotated[
        bool,
        typer.Option(
            "--compile-only",
            help="Compile every kernel for --target and execute none: for Gluon, and for what takes too long "
            "without a GPU. Launches are recorded without digests.",
        ),
    ] = False
    no_referee: Annotated[
        bool,
        typer.Option(
            "--no-referee",
            help="Compare with eager by fixed tolerances: without runs in float64 where results differ.",
        ),
    ] = False
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Then judge graphs and Inductor's kernels in float64; keeps what launches read and write, "
            "and records graph passes.",
        ),
    ] = False

    def require_values(self) -> None:
        """Raise Problem for an option that needs launches to be executed, if none is."""
        given = {
            "--judge": self.judge,
            "--keep-inputs or --keep-outputs": self.keep_inputs or self.keep_outputs,
            "--time": self.time_launches,
            "--hash-fn": self.hash_fn is not None,
        }
        for option in (option for option, is_given in given.items() if is_given and self.compile_only):
            raise Problem(
                f"{option} asks for what a launch does, and --compile-only executes none",
                "leave one of the two out",
            )

    @property
    def digests_of(self) -> Literal["all", "declared", "none"]:
        """The tensors whose digests are recorded."""
        return "none" if self.compile_only else self.digests.value

    @property
    def ir_recorded(self) -> PassIRWhen | None:
        """When the IR around passes is recorded; None: no pass is recorded."""
        return self.ir.value if self.passes else None

    def selection(self) -> Selection:
        """The launches that are recorded; raises Problem for a malformed range."""
        from tracing.record.launches.selection import selection_of

        return selection_of(self.kernel, self.launches, [p.value for p in self.phase or ()], self.rank)

    @property
    def every_graph_pass(self) -> bool:
        """True if the graphs after each pass of Inductor are recorded."""
        return self.graph_passes or self.judge

    @property
    def keeps(self) -> bool:
        """True if tensors are kept."""
        return self.keep_outputs or self.keep_inputs or self.judge

    def kept(self) -> Keep | None:
        """The tensors that are kept, and their budgets; None: no tensor."""
        from tracing.record.outputs import Keep

        if not self.keeps:
            return None
        inputs = self.keep_inputs or self.judge
        return Keep(inputs, self.keep_memory, self.keep_disk, self.keep_spill.value)
