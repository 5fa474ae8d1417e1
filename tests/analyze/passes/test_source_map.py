"""The instructions that a Python line became, in the location syntax of every stage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from handmade.records import compiled, new_run

from tracing import store
from tracing.analyze.passes.locations import Frame, Stack, invented_locations, located
from tracing.analyze.passes.source_map import StageLines, follow, stage_lines
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Compilation, StageArtefact

KERNEL, HELPER = "/src/kern.py", "/lib/standard.py"
INLINED: Stack = (Frame(HELPER, 170), Frame(HELPER, 191), Frame(KERNEL, 20))  # innermost first

TTIR = """\
#loc2 = loc("/src/kern.py":20:9)
%0 = arith.maxnumf %a, %b : f32 loc(#loc4)
%1 = tt.load %p : f32 loc("x"(#loc2))
%2 = tt.splat %1 : f32 loc(unknown)
%3 = tt.addptr %p, %2 : f32 loc(fused<"cse">["/src/kern.py":1:2, "/src/kern.py":3:4 to :9])
%4 = tt.splat %1 : f32 loc(callsite(unknown at "e"(#loc2)))
#loc3 = loc(callsite("/lib/standard.py":191:16 at "z"(#loc2)))
#loc4 = loc(callsite("m"("/lib/standard.py":170:12) at #loc3))
"""

LLIR = """\
define ptx_kernel void @k(ptr addrspace(1) %0) !dbg !4 {
  %2 = call float @llvm.maxnum.f32(float %0, float %1), !dbg !24
  call void @llvm.dbg.value(metadata i32 0), !dbg !24
  %3 = load float, ptr %0, align 4, !dbg !23
  %4 = add i32 0, 1
  switch i32 %4, label %5 [
    i32 0, label %6
  ], !dbg !23
5:
  ret void, !dbg !25
}
!1 = !DIFile(filename: "kern.py", directory: "/src")
!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 16, unit: !0)
!18 = !DILocation(line: 191, column: 16, scope: !19, inlinedAt: !23)
!19 = distinct !DILexicalBlockFile(scope: !4, file: !20, discriminator: 0)
!20 = !DIFile(filename: "standard.py", directory: "/lib")
!23 = !DILocation(line: 20, column: 9, scope: !4)
!24 = !DILocation(line: 170, column: 12, scope: !19, inlinedAt: !18)
!25 = !DILocation(line: 0, scope: !4)
"""

PTX = """\
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0
)
{
	.reg .b32 	%r<9>;
	ld.param.b64 	%rd1, [k_param_0];
	.loc	1 20 9                          // kern.py:20:9
	// begin inline asm
	.loc	1 20 9                          // kern.py:20:9
	mov.u32 %r1, %r5;
	.loc	1 21 9                          // kern.py:21:9
	@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
	// end inline asm
$L__tmp2:
	.loc	2 191 16, function_name $L__info_string0, inlined_at 1 20 9 // standard.py:191:16
	.loc	2 170 12, function_name $L__info_string0, inlined_at 2 191 16 // standard.py:170:12
	max.f32 	%r33, %r1, %r2;
	.loc	1 0 0
	ret;
}
	.file	1 "/src/kern.py"
	.file	2 "/lib/standard.py"
"""

AMDGCN = """\
k:
	.file	1 "/src" "kern.py"
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	.file	2 "/lib" "standard.py"
	.loc	2 170 12                        ; standard.py:170:12 @[ standard.py:191:16 @[ kern.py:20:9 ] ]
	v_max_f32_e32 v1, v2, v3
	.loc	1 20 9 is_stmt 0                ; kern.py:20:9
	s_endpgm
"""

SASS = """\
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/lib/standard.py", line 170 inlined at "/lib/standard.py", line 191
	//## File "/lib/standard.py", line 191 inlined at "/src/kern.py", line 20
	//## File "/src/kern.py", line 20
        /*0010*/                   FMNMX R2, R2, R3, !PT ;
	//## File "/src/kern.py", line 20
        /*0020*/              @!P0 EXIT ;
"""
LINE_20: Stack = (Frame(KERNEL, 20),)


def stacks(stage: str, text: str) -> list[tuple[Stack, ...]]:
    return [one.stacks for one in located(stage, text)]


@pytest.mark.parametrize(
    ("stage", "text"), [("ttir", TTIR), ("llir", LLIR), ("ptx", PTX), ("amdgcn", AMDGCN), ("sass", SASS)]
)
def test_every_stage_gives_the_same_inline_stack(stage: str, text: str) -> None:
    inlined = stacks(stage, text)

    assert (INLINED,) in inlined
    assert (LINE_20,) in inlined


def test_mlir_names_call_sites_and_fused_locations_are_read_to_their_files() -> None:
    fused = ((Frame(KERNEL, 1),), (Frame(KERNEL, 3),))

    assert stacks("ttir", TTIR) == [(INLINED,), (LINE_20,), (), fused, (LINE_20,)]


def test_a_truncated_or_recursive_location_has_no_source_line() -> None:
    text = (
        "%0 = tt.load %p loc(#loc1)\n#loc1 = loc(callsite(#loc1 at #loc9))\n%1 = tt.load %p loc(fused[#loc1\n"
    )

    assert stacks("ttir", text)[0] == ()


def test_llvm_instructions_are_counted_without_debug_calls_labels_and_switch_cases() -> None:
    assert stacks("llir", LLIR) == [(INLINED,), (LINE_20,), (), (), ()]


def test_lines_that_llvm_invents_inside_of_inline_assembly_are_not_believed() -> None:
    assert stacks("ptx", PTX) == [(), (LINE_20,), (LINE_20,), (INLINED,), ()]
    assert invented_locations(PTX) == 1


def test_a_call_site_that_has_no_line_of_its_own_is_still_a_frame() -> None:
    text = '\t.file 1 "/k.py"\n\t.loc 1 9 1, function_name $L, inlined_at 1 20 9\n\tret;\n'

    assert stacks("ptx", text) == [((Frame("/k.py", 9), Frame("/k.py", 20)),)]


def test_a_caller_in_one_of_two_files_of_one_name_is_not_guessed() -> None:
    files = '\t.file 1 "/a" "k.py"\n\t.file 2 "/b" "k.py"\n'

    inlined = stacks("amdgcn", files + "\t.loc 1 9 1 ; k.py:9:1 @[ k.py:20:9 ]\n\ts_endpgm\n")

    assert inlined == [((Frame("/a/k.py", 9), Frame("k.py", 20)),)]


def test_instructions_before_any_line_have_no_source_line() -> None:
    assert stacks("amdgcn", AMDGCN)[0] == stacks("sass", SASS)[0] == ()


STAGES = [StageLines("ttir", located("ttir", TTIR)), StageLines("sass", located("sass", SASS))]


def test_a_line_is_followed_call_path_by_call_path() -> None:
    threads = {thread.stack: thread.stages for thread in follow(STAGES, "src/kern.py:20")}

    assert set(threads) == {INLINED, LINE_20}
    assert [one.text for one in threads[INLINED]["sass"]] == ["FMNMX R2, R2, R3, !PT"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("kern.py:99", "lines of kern.py that became code: 1, 3, 20"),
        ("ern.py:20", "nearest: /src/kern.py"),
        ("model.py:20", "files whose lines became code: /lib/standard.py, /src/kern.py"),
        ("kern.py", "name one as FILE:LINE"),
    ],
)
def test_a_line_without_instructions_is_refused_with_the_lines_that_have_some(
    place: str, message: str
) -> None:
    with pytest.raises(Problem) as raised:
        follow(STAGES, place)

    assert raised.value.remedy.startswith(message)


def recorded(folder: Path, artefacts: dict[str, str]) -> tuple[store.Run, Compilation]:
    writer = new_run(folder)
    one = compiled(writer, "k", TTIR)
    for stage, text in artefacts.items():
        writer.append(StageArtefact(one.id, stage, writer.blob(text), 1.0))
    return store.Run(writer.path), one


def notes(stage_lines: list[StageLines]) -> dict[str, str]:
    return {one.stage: one.note for one in stage_lines if one.note}


def test_a_stage_that_was_not_reached_and_a_missing_disassembler_are_reported(tmp_path: Path) -> None:
    run, one = recorded(tmp_path, {"ttir": TTIR, "ttgir": TTIR, "ptx": PTX, "cubin": "ELF"})

    said = notes(stage_lines(run, one, nvdisasm=None))

    assert said["llir"] == "was not recorded: the compilation ended before"
    assert said["ptx"].startswith("1 .loc inside inline assembly left out")
    assert said["sass"].startswith("no nvdisasm was found")


def test_a_compilation_that_begins_with_ttgir_is_said_to_have_no_ttir(tmp_path: Path) -> None:
    run, one = recorded(tmp_path, {"ttgir": TTIR})

    said = notes(stage_lines(run, one, nvdisasm=None))

    assert said["ttir"] == "there is none: the compilation begins with ttgir, as of a Gluon kernel"


def test_ptx_without_call_sites_is_reported(tmp_path: Path) -> None:
    flat = "".join(line.split(", function_name")[0] + "\n" for line in PTX.splitlines())
    run, one = recorded(tmp_path, {"llir": LLIR, "ptx": flat})

    assert notes(stage_lines(run, one, nvdisasm=None))["ptx"].startswith("names no call sites")


def test_a_disassembler_that_fails_is_reported_with_its_message(tmp_path: Path) -> None:
    run, one = recorded(tmp_path, {"cubin": "no ELF"})

    said = notes(stage_lines(run, one, nvdisasm=Path(sys.executable)))  # any program that rejects `-gi`

    assert said["sass"].startswith(f"{sys.executable} failed: ")


def test_the_disassembler_that_triton_s_variable_names_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "nvdisasm"
    mine.touch(mode=0o755)
    monkeypatch.setenv("TRITON_NVDISASM_PATH", str(mine))

    assert installed_tools.nvdisasm() == mine
