"""How large a report is, how soon it appears, how smoothly its launches scroll, in how much memory.

Runs with 500 kernels, whose code and passes are those of softmax, matmul and attention, and with 1,000 to
100,000 launches of 8 tensors each, every digest another one. Run it with

    python -m pytest -s tests/benchmarks/test_report.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from benchmarks.test_compare import ARGUMENTS, LINE, META, WRITTEN, _digests  # noqa: E402
from handmade.records import new_run  # noqa: E402
from recorded.kernels import record  # noqa: E402
from report.html.browser import browser  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from tracing import store  # noqa: E402
from tracing.analyze.passes.pass_table import passes_by_hash  # noqa: E402
from tracing.analyze.passes.source_map import artefacts_by_hash  # noqa: E402
from tracing.cli.app import app  # noqa: E402
from tracing.model import (  # noqa: E402
    Argument,
    Compilation,
    Kernel,
    LaunchLine,
    LaunchTime,
    Outcome,
    PassEnd,
    PassIR,
    PassStart,
    Signature,
    StageArtefact,
)

KERNELS = 500
MOST = 60e6  # bytes of a report
SECONDS = 4  # of scrolling


def write(folder: Path, launches: int, kernels: store.Run) -> Path:
    """A run of so many launches; each of its kernels has the code and the passes of one that was recorded."""
    import random

    writer = new_run(folder)
    _kernels(writer, kernels)
    roles = ["in"] * (ARGUMENTS - WRITTEN) + ["out"] * WRITTEN
    args = tuple(Argument(f"{role}_ptr{n}", role, META) for n, role in enumerate(roles))  # type: ignore[arg-type]
    writer.extend([Signature(k, k, (8, 1, 1), "forward", "cuda:0", args) for k in range(KERNELS)])
    values, rubbish = random.Random(0), random.Random(1)
    for start in range(0, launches, LINE):
        numbers = range(start, min(start + LINE, launches))
        writer.extend(
            [LaunchLine(i, i % KERNELS, 0, tuple((2 * i + j) % 97 for j in range(8))) for i in numbers]
        )
        writer.extend([LaunchTime(i, 10 + values.random(), 5 + values.random()) for i in numbers])
        writer.append(_digests(numbers, values, rubbish, None))
    writer.append(Outcome("passed", ""))
    writer.close()
    return writer.path


def _kernels(writer: store.RunWriter, recorded: store.Run) -> None:
    passes, artefacts = passes_by_hash(recorded), artefacts_by_hash(recorded)
    originals = list(recorded.records(Compilation))
    blobs: dict[str, str] = {}

    def copied(blob: str) -> str:
        if blob not in blobs:
            blobs[blob] = writer.blob(recorded.bytes(blob))
        return blobs[blob]

    source = writer.blob((TESTS / "recorded/kernels.py").read_text())
    for k in range(KERNELS):
        original = originals[k % len(originals)]
        name, hash = f"triton_{original.kernel_name}_{k}", f"{k:064x}"
        writer.append(replace(original, id=k, hash=hash, kernel_name=name, source=copied(original.source)))
        file = f"{TESTS / 'recorded/kernels.py'}:1"
        writer.append(Kernel(k, name, hash, original.target, 4, 3, 1, {}, {}, source, file))
        for stage, blob in artefacts[original.hash].items():
            writer.append(StageArtefact(k, stage, copied(blob), 1.0))
        for one in passes[original.hash]:
            facts = {
                n: getattr(one, n)
                for n in ("index", "stage", "name", "adder", "arguments", "pipeline", "caller")
            }
            writer.append(PassStart(k, **facts))
            writer.append(PassIR(writer.process, k, one.index, "before", copied(one.before)))
            writer.append(PassIR(writer.process, k, one.index, "after", copied(one.after or "")))
            writer.append(PassEnd(k, one.index, one.wall_ms or 0.0))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return record(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("launches", [1_000, 10_000, 100_000])
def test_size_first_paint_frames_and_memory(
    chromium: Any, kernels: store.Run, tmp_path: Path, launches: int
) -> None:
    run, report = write(tmp_path, launches, kernels), tmp_path / "report.html"
    began = time.process_time()
    done = CliRunner().invoke(app, ["report", str(run), "-o", str(report), "--no-sass"])
    assert done.exit_code == 0, done.output
    written = time.process_time() - began
    size = report.stat().st_size

    measured = measure(chromium, report)
    print(
        f"\n{launches:,} launches, {KERNELS} kernels: {size / 1e6:.1f} MB, written in {written:.0f} s of CPU"
    )
    print("  " + ", ".join(f"{name} {value:.2f}" for name, value in measured.items()))
    assert size <= MOST


def measure(chromium: Any, report: Path) -> Mapping[str, float]:
    """Seconds until the first screen, frames a second while the launches scroll, and megabytes of the tab."""
    tab = chromium.new_context(viewport={"width": 1400, "height": 900}).new_page()
    began = time.monotonic()
    tab.goto(report.as_uri(), wait_until="commit")
    tab.wait_for_selector(".finding", timeout=120_000)
    appeared = time.monotonic() - began
    paint = tab.evaluate("performance.getEntriesByName('report')[0].startTime") / 1e3
    tab.wait_for_load_state("load")
    tab.goto(f"{report.as_uri()}#a/launches")
    tab.wait_for_selector(".space .row", timeout=120_000)
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})  # CPU time: others compute, too
    session.send("Performance.enable")
    before = _metrics(session)
    frames = tab.evaluate(SCROLL, SECONDS * 1000)
    work = _metrics(session)["TaskDuration"] - before["TaskDuration"]
    tab.goto(f"{report.as_uri()}#a/kernel/2/code")
    began = time.monotonic()
    tab.wait_for_selector(".cm-line", timeout=120_000)
    code = time.monotonic() - began
    return {
        "first screen s": paint,
        "by the clock s": appeared,
        "frames a second": frames["rate"],
        "CPU ms a frame": 1000 * work / frames["count"],
        "longest frame ms": frames["longest"],
        "code of a kernel s": code,
        "memory MB": _memory(chromium),
    }


SCROLL = """
async milliseconds => {
  const box = document.querySelector('.rows')
  const times = []
  const start = performance.now()
  await new Promise(done => requestAnimationFrame(function next(now) {
    times.push(now)
    box.scrollTop += 90
    now - start < milliseconds ? requestAnimationFrame(next) : done()
  }))
  const gaps = times.slice(1).map((time, n) => time - times[n])
  const rate = 1000 * gaps.length / (times.at(-1) - times[0])
  return { count: gaps.length, rate, longest: Math.max(...gaps) }
}
"""


def _metrics(session: Any) -> Mapping[str, float]:
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def _memory(chromium: Any) -> float:
    # of the process that shows the tab, shared pages divided
    session = chromium.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for one in processes:
        if one["type"] == "renderer":
            lines = Path(f"/proc/{one['id']}/smaps_rollup").read_text().splitlines()
            sizes.append(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")))
    return max(sizes)
