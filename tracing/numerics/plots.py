"""Heat maps of errors as PNG files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from tracing.errors import Problem
from tracing.numerics.diff_report import ResultDiff


def plot_failed(results: Iterable[ResultDiff], folder: Path, model: str) -> tuple[Path, ...]:
    """Write a heat map of each tensor that differs into a folder, and return the files.

    Raises Problem if matplotlib is not installed.
    """
    failed = [one for one in results if one.tensor is not None and not one.tensor.passed and one.tensor.heat]
    return tuple(_plot(one, folder / f"{_file_name(f'{model} {one.name}')}.png") for one in failed)


def _plot(result: ResultDiff, path: Path) -> Path:
    try:
        from matplotlib.colors import LogNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        advice = "install it with `pip install matplotlib`"
        raise Problem(f"heat maps need matplotlib: {error}", advice) from error
    assert result.tensor is not None
    figure = Figure(layout="constrained")
    axes = figure.add_subplot()
    shown = [[value if 0 < value < math.inf else math.nan for value in row] for row in result.tensor.heat]
    finite = any(not math.isnan(value) for row in shown for value in row)
    image = axes.imshow(shown, aspect="auto", norm=LogNorm() if finite else None)
    axes.set(title=f"{result.name}: largest absolute error", xlabel="columns", ylabel="rows")
    if finite:
        figure.colorbar(image, ax=axes)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")
