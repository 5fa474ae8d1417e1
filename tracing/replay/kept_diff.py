"""Compare the outputs of launches of two runs, element by element, if both runs kept them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tracing.model import Blob, KeptTensor, KernelLaunch
from tracing.numerics.diff_report import ResultDiff
from tracing.numerics.tensor_diff import ComparisonConfig, compare_tensors
from tracing.record.outputs import load
from tracing.store import Run
from tracing.store.kept_process import kept_process


@dataclass(frozen=True, slots=True)
class KeptResult:
    """The content of an argument after a launch."""

    index: int  # of the launch
    blob: Blob


def kept_diffs(a: Run, b: Run, rank: int, config: ComparisonConfig) -> Iterator[ResultDiff]:
    """Compare each output of a launch of `b` with that of the same launch of `a`, in order of `a`.

    rank -- of both runs

    Two launches are the same if they are the n-th launches of kernels of one name. A tensor that only one run
    kept is a difference. Memory: two tensors. Raises Problem if one of the runs kept nothing, or has several
    processes of that rank.
    """
    expected, actual = (_kept(run, rank) for run in (a, b))
    for key in dict.fromkeys((*expected, *actual)):
        kernel, nth, argument = key
        at = expected.get(key) or actual[key]
        name = f"#{at.index} {kernel} {argument}"
        if key not in expected or key not in actual:
            yield ResultDiff(
                name, f"only {'a' if key in expected else 'b'} kept it, of call {nth} of the kernel"
            )
            continue
        left, reference = load(b.bytes(actual[key].blob)), load(a.bytes(expected[key].blob))
        yield ResultDiff(name, "", compare_tensors(left, reference, config))


def _kept(run: Run, rank: int) -> dict[tuple[str, int, str], KeptResult]:
    process = kept_process(run, rank)
    blobs: dict[int, list[KeptTensor]] = {}
    for one in run.view(process, KeptTensor, KeptTensor):
        if one.side == "after":
            blobs.setdefault(one.launch, []).append(one)
    results: dict[tuple[str, int, str], KeptResult] = {}
    for launch, nth in _calls(run, process):
        for kept in blobs.get(launch.index, ()):
            key = launch.kernel_name, nth, launch.args[kept.position].name
            results[key] = KeptResult(launch.index, kept.blob)
    return results


def _calls(run: Run, process: str) -> Iterator[tuple[KernelLaunch, int]]:
    # each launch, and how many kernels of its name were launched before
    joiner, calls = run.joiner(process), Counter[str]()
    for row in run.rows(process):
        launch = joiner.launch(row)
        yield launch, calls[launch.kernel_name]
        calls[launch.kernel_name] += 1
