"""`tracing resume`: continue a recorded compilation at a pass, from its IR or an edited one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.bisect.probes import Artefacts
from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.analyze.passes.spelling import same as same_but
from tracing.cli.answers.recording_hints import record_command
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, out, spinner
from tracing.cli.narrow.other_compiler import (
    UnlikeResult,
    recorded_and_made,
    unlike_next,
    unlike_result,
    unlike_text,
)
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import OneKernelOption, OnePassOption, RunArgument
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.outputs import OutputFolderOption
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import Trust
from tracing.environment.installed_tools import use_inductors_ptxas
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.store.run_files import file_name

_OTHER_PTXAS = "torch brings a ptxas of its own: name it in TRITON_PTXAS_PATH, or end with `--to ptx`"


@dataclass(frozen=True)
class ResumedPart:
    """The part of a compile that is executed anew."""

    which: OnePassOption
    kernel: OneKernelOption = None
    stage: Annotated[str | None, typer.Option(help="Stage of the pass: ttir, ttgir or llir.")] = None
    after: Annotated[bool, typer.Option("--after", help="Start after the pass instead of before it.")] = False
    ir: Annotated[Path | None, typer.Option(help="Start with this file instead of the recorded IR.")] = None
    to: Annotated[str | None, typer.Option(help="End with this artefact: ttgir, llir, ptx, cubin …")] = None


@app.command(rich_help_panel=NARROW)
@with_option_records
def resume(
    name: RunArgument,
    part: ResumedPart,
    output: OutputFolderOption = None,
    seconds: Annotated[float, typer.Option(help="Time limit of the compile.")] = 300.0,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Continue a recorded compilation from the IR before or after a pass, and compare the artefacts.

    Ignores differences in names of values, in the order of a phi's incoming values, and in locations. Equal
    PTX with another cubin is no difference, and is reported as "another cubin of the same PTX": ptxas is not
    deterministic. With --ir shows what the edit changes. Without --output no artefact is written.

    Example: tracing resume demo-sound --kernel triton_poi_fused_mul_sigmoid_1#1 --pass tritongpu-coalesce

    Exit status: 0 if every artefact is as recorded, except for these differences, 1 if one differs, 2 if
    none can be compared.
    """
    run = open_derived(name, runs, part.kernel, part.which, part.stage, trust=trust)
    run.require_trust(f"Triton's compiler on its IR at {part.which}")
    require_same_triton(run, "resume it")
    chosen = chosen_kernel(run, part.kernel)
    passes = passes_of(run, chosen)
    record = find_pass(passes, part.which, part.stage)
    made = _made(run, chosen, passes, record, part, seconds)
    written = _write(made, output, chosen.kernel_name) if output is not None else []
    recorded = {one.stage: run.bytes(one.blob) for whole, one in run.artefacts() if whole.hash == chosen.hash}
    status, verdicts = _compared(chosen, made, recorded)
    later = passes[passes.index(record) + part.after :]
    unlike = unlike_result(run, later) if status == 1 and not part.ir else None
    if as_json:
        facts = {"kernel": chosen.kernel_name, "pass": record.index, "artefacts": verdicts}
        rest = {"written": list(map(str, written)), "unlike_pass": unlike.record.index if unlike else None}
        print(json.dumps({"run": str(run.path), "status": status, **facts, **rest}, indent=2))
        raise typer.Exit(status)
    lines = [*map(str, written), *(f"{one}: {verdict}" for one, verdict in verdicts.items())]
    for line in lines:
        out.print(Text(line))
    effect = _effect(made, recorded, written) if part.ir else _cause(run, unlike)
    for change in effect if status == 1 else ():
        out.print(change)
    raise typer.Exit(status)


def _made(
    run: store.Run,
    chosen: Compilation,
    passes: Sequence[PassRecord],
    record: PassRecord,
    part: ResumedPart,
    seconds: float,
) -> Artefacts:
    text = _text(part.ir) if part.ir else _recorded_text(run, record, part.after)
    use_inductors_ptxas()
    with spinner("importing triton"):
        from tracing.compiler import resume as compiler
    _require_artefact(part.to, compiler.stages_of(chosen), record.stage)
    point = compiler.resume_point_before(record, passes, run.text)
    file = str(part.ir) if part.ir else None
    point = replace(point, ir=text, index=record.index + part.after, file=file)
    with spinner(f"compiling from pass {record.index}, {record.name}"):
        of_edit = f"its IR must be as {record.name} takes it: that of stage {record.stage}" if file else ""
        return _compiled(lambda: compiler.resume(chosen, point, last=part.to), seconds, of_edit)


def _cause(run: store.Run, unlike: UnlikeResult | None) -> Iterator[Text]:
    # why artefacts of the recorded IR differ, and what to do next
    if unlike is None:
        yield Text("→ each MLIR pass gives what was recorded; the difference arises after these passes")
        commands = [record_command(run)]
    else:
        yield from unlike_text(unlike)
        commands = unlike_next(run, unlike)
    yield from (Text(f"    next      {command}") for command in commands)


def _effect(made: Artefacts, recorded: Mapping[str, bytes], written: Sequence[Path]) -> Iterator[Text]:
    # what an edited IR changes in the first artefact with another text
    for stage, content in made.items():
        was = recorded.get(stage, b"").decode(errors="replace")
        if isinstance(content, str) and was and content != was and not same_but(was, content, stage):
            yield from recorded_and_made(f"the beginning of what the edit changes in {stage}", was, content)
            if not written:
                yield Text("    all of it: the same command with `--output FOLDER` writes the artefacts")
            return


def _require_artefact(name: str | None, stages: Sequence[str], first: str) -> None:
    later = stages[stages.index(first) :]
    if name is not None and name not in later:
        near = get_close_matches(name, later, n=2)
        remedy = f"nearest: {', '.join(near)}; " if near else ""
        problem = f"{name} is no artefact of a compile from stage {first} on"
        raise Problem(problem, f"{remedy}end with one of: {', '.join(later)}")


def _text(path: Path) -> str:
    remedy = "name a file with IR, as `--output` writes"
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise Problem(f"{path} cannot be read: {error}", remedy) from None
    if not text.strip():
        raise Problem(f"{path} is empty", remedy)
    return text


def _recorded_text(run: store.Run, record: PassRecord, after: bool) -> str:
    blob = record.after if after else record.before
    if blob is None:
        raise Problem(f"pass {record.index}, {record.name}, did not end", "start before it: without --after")
    return run.text(blob)


def _compiled(compile_on: Callable[[], Artefacts], seconds: float, of_edit: str) -> Artefacts:
    # edited IR may crash the compiler
    from tracing.compiler.child import in_child

    ended = in_child(compile_on, seconds)
    if ended.failure:
        assertion = next((line for line in ended.stderr.splitlines() if "Assertion" in line), "")
        remedy = _OTHER_PTXAS if "Unsupported .version" in ended.failure else of_edit
        problem = f"the compile from there on failed: {ended.failure}"
        raise Problem("\n  ".join(filter(None, [problem, assertion])), remedy)
    made: Artefacts = ended.result
    return made


def _write(made: Artefacts, folder: Path, kernel: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for stage, content in made.items():
        path = folder / f"{file_name(kernel)}.{stage}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        written.append(path)
    return written


def _compared(
    chosen: Compilation, made: Artefacts, recorded: Mapping[str, bytes]
) -> tuple[int, dict[str, str]]:
    # the exit status, and a text about each artefact
    same: dict[str, bool] = {}
    verdicts: dict[str, str] = {}
    for stage, content in made.items():
        data = content.encode() if isinstance(content, str) else content
        if stage not in recorded:
            verdicts[stage] = "not recorded, the compilation ended before"
            continue
        same[stage], verdicts[stage] = data == recorded[stage], "identical"
        if not same[stage]:
            same[stage], verdicts[stage] = _difference(chosen, recorded, made, stage)
    return 2 if not same else int(not all(same.values())), verdicts


def _difference(
    chosen: Compilation, recorded: Mapping[str, bytes], made: Artefacts, stage: str
) -> tuple[bool, str]:
    # whether two artefacts that are not identical are equivalent, and a text about it
    content = made[stage]
    if isinstance(content, str):
        spelling = same_but(recorded[stage].decode(errors="replace"), content, stage)
        return bool(spelling), f"equal except for {spelling}" if spelling else "differs"
    if stage == "cubin" and "ptx" in made:
        return _assembler(chosen, recorded, str(made["ptx"]), content)
    was = recorded.get("amdgcn", b"").decode(errors="replace")
    if stage == "hsaco" and same_but(was, str(made.get("amdgcn", "")), "amdgcn"):
        return True, "differs in locations, as its amdgcn does"
    return False, "differs"


def _assembler(chosen: Compilation, recorded: Mapping[str, bytes], ptx: str, made: bytes) -> tuple[bool, str]:
    from tracing.compiler.codegen.ptxas import assemblers
    from tracing.compiler.codegen.reassemble import difference

    was = recorded.get("ptx", b"").decode(errors="replace")
    if ptx != was and not same_but(was, ptx, "ptx"):
        return False, "differs, as its PTX does"
    arch = int(chosen.target.removeprefix("cuda:"))
    name = next((f"{one.name} {one.version}" for one in assemblers(arch)), "ptxas")
    change = difference(was, recorded["cubin"], made, target=chosen.target, options=chosen.options)
    return True, f"another cubin of the same PTX, by {name}: {change.reason}"
