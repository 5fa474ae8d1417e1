"""One recorded launch as a script of its own: kernel, inputs, configuration, and the digests it must leave.

The script needs torch, Triton, NumPy and safetensors, and nothing of this repository. Without a GPU it runs
the kernel in Triton's interpreter, whose bits are those of a GPU only where no rounding is involved, and
which cannot execute libdevice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from string import Template

from tracing.analyze.again import again, find_launch
from tracing.analyze.recording import recording
from tracing.errors import Problem
from tracing.store import Run

_TEMPLATE = Path(__file__).with_name("repro.py.in")


@dataclass(frozen=True, slots=True)
class Repro:
    """What was written."""

    script: Path
    files: tuple[Path, ...]
    missing: tuple[str, ...]  # inputs without recorded contents: they are zeros


def write_repro(run: Run, index: int, folder: Path, rank: int | None = None) -> Repro:
    """Write launch `index` of a run into a folder, which is made: repro.py, kernel.py, launch.json, inputs.

    rank -- whose launch; None: of the one process that has such a launch

    Raises Problem, with what is missing, if there is no such launch, or the run has no source of its kernel,
    not all that the source uses, or none of the inputs.
    """
    made = again(run, *find_launch(run, index, rank))
    if made.missing and not made.inputs:
        command = recording(run, "--keep-inputs", "--launches", f"{index}:{index + 1}")
        raise Problem(
            f"the inputs of launch {index} were not kept: {', '.join(made.missing)}",
            f"record it with `{join(command)}`",
        )
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, blob in made.inputs.items():
        file = folder / f"{name}.safetensors"
        file.write_bytes(run.bytes(blob))
        files.append(file)
    facts = folder / "launch.json"
    facts.write_text(json.dumps(made.facts, indent=1))
    kernel = folder / "kernel.py"  # a file of its own: its names are not the script's
    kernel.write_text(made.module)
    script = folder / "repro.py"
    told = {"index": index, "kernel": made.launch.kernel_name, "run": run.name}
    script.write_text(Template(_TEMPLATE.read_text()).substitute(told))
    return Repro(script, (script, kernel, facts, *files), made.missing)
