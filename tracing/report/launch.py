"""One launch in full as text, with complete digests, strides and storages."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rich.text import Text

from tracing.analyze.passes.pass_table import KernelPasses
from tracing.analyze.runs.call_sites import LaunchOrigin
from tracing.model import Digest, KernelArg, KernelLaunch
from tracing.report.text import (
    Line,
    line_text,
    plural,
    some_lines,
    source_position,
    step_text,
    tensor_text,
    times,
    user_hashes,
)


def launch_in_full(
    launch: KernelLaunch, origin: LaunchOrigin | None, fresh: Collection[int] = ()
) -> Iterator[Line]:
    """The launch, its kernel, and its arguments, several lines each.

    origin -- its call site, None if that is unknown
    fresh  -- positions of outputs in memory that nothing had written before the launch
    """
    kernel = launch.kernel
    yield Text.assemble(
        f"#{launch.index} ", (kernel.name, "bold"), "" if launch.finished else "  did not finish"
    )
    if origin is not None:
        yield from (Text(f"    computes  {line_text(line)}") for line in origin.computes)
    facts = {
        site_label(origin): str(origin or "an unknown line of the program"),
        "grid": launch.grid,
        "phase": f"{launch.phase}, on {launch.device}, stream {launch.stream}",
        "kernel": f"{kernel.hash}  {kernel.target}  {kernel.kind}",
        "source": source_position(kernel.file, kernel.copied) if kernel.file else "unknown",
        "config": f"num_warps={kernel.num_warps} num_stages={kernel.num_stages} num_ctas={kernel.num_ctas}",
        "constants": " ".join(f"{name}={value}" for name, value in kernel.constants.items()) or "none",
        "stages": ", ".join(kernel.stages) or "none kept",
    }
    if step := ", ".join(step_text(launch)):
        facts["step"] = step
    if time := ", ".join(times(launch)):
        facts["time"] = time
    yield from (Text(f"    {name:<9} {value}") for name, value in facts.items())
    yield Text(f"    {plural(len(launch.args), 'argument')}:")
    for position, arg in enumerate(launch.args):
        yield from _argument(arg, user_hashes(launch, position), fresh=position in fresh)


def kernel_origin_text(
    name: str, file: str | None, first: KernelLaunch | None, origin: LaunchOrigin | None, shown: str
) -> list[str]:
    """What a recorded program launched, for a debugger at a pass of the kernel, several lines.

    file   -- where the kernel's Python source begins, "path:line"
    first  -- its first launch, None if it was compiled only
    origin -- the call site of this launch, None if that is unknown
    shown  -- the command that prints the kernel's source from the run; empty if there is none
    """
    known = [*([source_position(file)] if file else []), *([shown] if shown else [])]
    source = [f"  {'' if n else 'source':<9} {line}" for n, line in enumerate(known)]
    if first is None:
        return [f"the recorded program compiled {name} and did not launch it", *source]
    computes = [f"  computes  {line}" for line in some_lines(origin.computes)] if origin else []
    site = f"  {site_label(origin):<9} {origin or 'an unknown line of the program'}"
    return [f"the recorded program launched {name}, first as launch #{first.index}", site, *computes, *source]


def site_label(origin: LaunchOrigin | None) -> str:
    """`graph at` for a launch of compiled code, whose call site is where its graph begins; else `at`."""
    return "graph at" if origin is not None and origin.computes else "at"


def _argument(arg: KernelArg, hashes: str, *, fresh: bool) -> Iterator[Line]:
    if arg.tensor is None:
        yield Text(f"    {arg.name} = {arg.value}")
        return
    meta = arg.tensor
    wrote = f", last written by {arg.writer}" if arg.writer else ""
    seen = "modified" if arg.modified else "not modified" if arg.after else "not digested"
    yield Text(f"    {arg.name} = {tensor_text(meta)}  declared {arg.declared}, {seen}{wrote}{hashes}")
    yield Text(
        f"        stride {list(meta.stride)}, offset {meta.offset}, {meta.device}, storage {arg.storage}"
    )
    if (one := arg.descriptor) is not None:
        by, padding = f"by a descriptor, blocks of {list(one.block_shape)}", f"padded with {one.padding}"
        yield Text(f"        {by} in {list(one.shape)} with strides {list(one.strides)}, {padding}")
    for side, digest in (("before", arg.before), ("after", arg.after)):
        if digest is not None:
            unwritten = fresh and side == "before"
            yield Text(
                f"        {side:<7}{f'{digest.bits}  not yet written' if unwritten else digest_text(digest)}"
            )


def digest_text(digest: Digest) -> str:
    """All digits of a digest, and what it counts; without the sum of magnitudes that a bool does not have."""
    counts = {"nan": digest.nan, "inf": digest.inf, "-0": digest.negative_zero}
    facts = [f"{name}={count}" for name, count in counts.items() if count]
    magnitude = [] if digest.l1 is None else [f"l1={digest.l1}"]
    return "  ".join([digest.bits, *magnitude, *facts])


def compiled_text(name: str, passes: KernelPasses) -> Line:
    """The recorded compilation of a launch's kernel."""
    counted = f"{plural(passes.count, 'pass')}, {passes.changed} changed the IR, {passes.wall_ms:.1f} ms"
    return Text(f"    compiled as {name}: {counted}")
