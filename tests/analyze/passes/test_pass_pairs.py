"""The passes of two compilations are aligned, and the first pass after which their IR differs is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import tracing
from handmade.records import compiled, new_run
from handmade.runs import never_recorded
from recorded.runs import recorded_passes, words

from tracing import store
from tracing.analyze.passes.compilation_pairs import differing, paired
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_pairs import PassPairs
from tracing.analyze.passes.pass_table import passes_of
from tracing.analyze.runs.compilers import says_nothing_of_compilers
from tracing.model import Kernel

LOAD = "%0 = tt.load %p : f32\n"
RENAMED = "%x = tt.load %p : f32\n"
FENCED = LOAD + "ttng.fence_async_shared {bCluster = false}\n"


def pairs(tmp_path: Path, a: list[tuple[str, str, str]], b: list[tuple[str, str, str]]) -> PassPairs:
    """Two compilations of one text: (stage, pass, IR after it)."""
    runs = []
    for name, passes in (("a", a), ("b", b)):
        writer = new_run(tmp_path / name)
        compiled(writer, "kernel", LOAD, *passes)
        writer.close()
        runs.append(store.Run(writer.path))
    of_a, of_b = (passes_of(run, compilations(run)[0]) for run in runs)
    return PassPairs(of_a, of_b, runs[0].text, runs[1].text)


def states(aligned: PassPairs) -> list[tuple[int | None, int | None, str]]:
    return [(p.a.index if p.a else None, p.b.index if p.b else None, p.state) for p in aligned.pairs]


def test_equal_ir_parts_after_no_pass_whatever_its_values_are_called(tmp_path: Path) -> None:
    aligned = pairs(tmp_path, [("ttir", "cse", LOAD)], [("ttir", "cse", RENAMED)])

    assert states(aligned) == [(0, 0, "equal")]
    assert (aligned.first_divergence(), aligned.last_divergence(), aligned.entry_equal) == (None, None, True)


def test_the_ir_parts_after_the_pass_that_makes_it_differ_and_not_after_those_that_follow(
    tmp_path: Path,
) -> None:
    aligned = pairs(
        tmp_path,
        [("ttgir", "coalesce", LOAD), ("llir", "fence", LOAD), ("llir", "cse", LOAD)],
        [("ttgir", "coalesce", LOAD), ("llir", "fence", FENCED), ("llir", "cse", FENCED)],
    )

    assert states(aligned) == [(0, 0, "equal"), (1, 1, "diverges"), (2, 2, "differs")]
    assert aligned.first_divergence() is aligned.last_divergence() is aligned.pairs[1]


def test_a_difference_that_a_later_pass_removes_is_not_one_for_good(tmp_path: Path) -> None:
    passes = [("ttgir", "layouts", LOAD), ("ttgir", "cse", LOAD), ("llir", "fence", LOAD)]
    other = [("ttgir", "layouts", LOAD * 2), ("ttgir", "cse", LOAD), ("llir", "fence", FENCED)]

    aligned = pairs(tmp_path, passes, other)

    assert [state for *_, state in states(aligned)] == ["diverges", "reconverged", "diverges"]
    assert aligned.last_divergence() is aligned.pairs[2]


def test_a_pass_that_only_one_compiler_has_is_compared_by_its_effect(tmp_path: Path) -> None:
    aligned = pairs(
        tmp_path,
        [("ttgir", "prefetch", LOAD), ("ttgir", "cse", LOAD)],
        [("ttgir", "cse", LOAD), ("ttgir", "fence", FENCED)],
    )

    assert states(aligned) == [(0, None, "equal"), (1, 0, "equal"), (None, 1, "diverges")]


def test_of_passes_of_one_name_those_with_equal_ir_are_partners(tmp_path: Path) -> None:
    aligned = pairs(
        tmp_path,
        [("ttgir", "cse", FENCED)],
        [("ttgir", "cse", LOAD), ("ttgir", "cse", FENCED)],
    )

    assert states(aligned) == [(None, 0, "equal"), (0, 1, "equal")]


def test_a_module_attribute_is_reported_but_is_no_difference_of_ir(tmp_path: Path) -> None:
    module = "module {\n}\n"
    given = "module attributes {ttg.shared = 16 : i32} {\n}\n"

    aligned = pairs(tmp_path, [("ttgir", "cse", module)], [("ttgir", "cse", given)])

    (one,) = aligned.attributes()
    assert (one.name, one.a, one.b, one.since.name) == ("ttg.shared", None, "16 : i32", "cse")
    assert aligned.first_divergence() is None


def test_a_kernel_s_partner_is_the_one_that_differs_least(tmp_path: Path) -> None:
    known = []
    for name, warps in (("a", ("4", "8")), ("b", ("8", "4"))):
        writer = new_run(tmp_path / name)
        for number, count in enumerate(warps):
            compiled(writer, "matmul", LOAD, ("ttir", "cse", LOAD), number=number, num_warps=count)
        compiled(writer, f"only_{name}", LOAD, ("ttir", "cse", LOAD), number=2)
        writer.close()
        known.append(compilations(store.Run(writer.path)))

    aligned = paired(*known)

    assert [(a.options["num_warps"], b.options["num_warps"]) for a, b in aligned.pairs] == [
        ("4", "4"),
        ("8", "8"),
    ]
    assert [one.kernel_name for one in (*aligned.only_a, *aligned.only_b)] == ["only_a", "only_b"]


def test_an_equal_compilation_is_paired_before_a_similar_one(tmp_path: Path) -> None:
    known = []
    for name, warps in (("a", ("4", "8")), ("b", ("8",))):
        writer = new_run(tmp_path / name)
        for number, count in enumerate(warps):
            compiled(writer, "matmul", LOAD, ("ttir", "cse", LOAD), number=number, num_warps=count)
        writer.close()
        known.append(compilations(store.Run(writer.path)))

    aligned = paired(*known)

    assert [(a.options["num_warps"], b.options["num_warps"]) for a, b in aligned.pairs] == [("8", "8")]
    assert [one.options["num_warps"] for one in (*aligned.only_a, *aligned.only_b)] == ["4"]


@pytest.mark.parametrize("named", [(), ("--kernel", "copy")])
def test_a_variant_of_a_kernel_that_only_one_run_compiled_is_a_difference(
    named: tuple[str, ...], tmp_path: Path
) -> None:
    for name, variants in (("a", ("64",)), ("b", ("32", "64"))):
        writer = new_run(tmp_path / name)
        compiled(writer, "add", LOAD, ("ttir", "cse", LOAD))
        for number, block in enumerate(variants, 1):
            passes, constants = ("ttir", "cse", LOAD), {"BLOCK": block}
            compiled(writer, "copy", LOAD, passes, number=number + int(block), constants=constants)
        writer.close()
    a, b = (str(store.recorded(tmp_path / name)[0]) for name in "ab")

    done = tracing("passes", a, b, *named, runs=tmp_path)
    answer = json.loads(tracing("passes", a, b, *named, "--json", runs=tmp_path).stdout)

    assert done.returncode == 1
    assert "only b compiled copy#1" in done.stdout and "constant BLOCK: 64 | 32" in done.stdout
    assert answer["status"] == 1 and answer["only_a"] == []
    assert [one["kernel"] for one in answer["only_b"]] == ["copy"]
    assert all(one["entry_equal"] and one["first_difference"] is None for one in answer["kernels"])


def test_a_kernel_that_the_other_run_launched_from_a_cache_is_in_both(tmp_path: Path) -> None:
    for name in "ab":
        writer = new_run(tmp_path / name)
        compiled(writer, "add", LOAD, ("ttir", "cse", LOAD))
        if name == "a":
            cached = compiled(writer, "copy", LOAD, ("ttir", "cse", LOAD), number=1)
        else:
            writer.append(Kernel(0, "copy", cached.hash, "cuda:90", 4, 3, 1, {}, {}))
        writer.close()
    a, b = (str(store.recorded(tmp_path / name)[0]) for name in "ab")

    done = tracing("passes", a, b, runs=tmp_path)

    assert (done.returncode, "only a" in done.stdout) == (0, False)


def test_other_sources_differ_before_the_first_pass_and_no_row_repeats_it(tmp_path: Path) -> None:
    for name, ir in (("a", LOAD), ("b", FENCED)):
        writer = new_run(tmp_path / name)
        compiled(writer, "kernel", ir, ("ttir", "cse", ir), ("ttir", "inline", ir))
        compiled(writer, "equal", LOAD, ("ttir", "cse", LOAD), number=1)
        writer.close()
    a, b = (str(store.recorded(tmp_path / name)[0]) for name in "ab")

    table, one = (tracing("passes", a, b, *more, runs=tmp_path) for more in ((), ("--kernel", "kernel")))

    assert (table.returncode, one.returncode) == (1, 1)
    rows = words(table.stdout).splitlines()
    assert rows[0] == "kernel a b the IR first differs differs to the end from"
    assert rows[1].endswith("before the first pass the first pass") and rows[2].endswith(" equal")
    assert "the sources or the types of arguments do; it differs to the end" in one.stdout
    assert "no pass" not in one.stdout and "cse" not in one.stdout
    assert "+ttng.fence_async_shared" in words(one.stdout)


@pytest.mark.parametrize("kernels", [("add",), ("add", "copy")])
def test_constants_that_differ_are_named_before_any_pass(kernels: tuple[str, ...], tmp_path: Path) -> None:
    for name, ir in (("a", LOAD), ("b", FENCED)):
        writer = new_run(tmp_path / name)
        for number, kernel in enumerate(kernels):
            constants = {"BLOCK": "64" if name == "a" else "32", "EVEN": "True"}
            compiled(writer, kernel, ir, ("ttir", "cse", ir), number=number, constants=constants)
        writer.close()
    a, b = (str(store.recorded(tmp_path / name)[0]) for name in "ab")

    lines = [line.strip() for line in tracing("passes", a, b, runs=tmp_path).stdout.splitlines()]
    answer = json.loads(tracing("passes", a, b, "--json", runs=tmp_path).stdout)

    first = next(number for number, line in enumerate(lines) if "first pass" in line)
    named = "constant BLOCK: 64 | 32" + (", of add, copy" if len(kernels) > 1 else "")
    assert named in lines[:first] and "EVEN" not in " ".join(lines)
    assert all(one["constants"] == {"BLOCK": {"a": "64", "b": "32"}} for one in answer["kernels"])
    assert ("differs: so does constant BLOCK: 64 | 32; it differs" in lines[first]) == (len(kernels) == 1)


def test_the_folder_of_a_library_is_no_difference() -> None:
    a, b = {"libs": "(('x', '/usr/lib/x.bc'),)", "n": "1"}, {"libs": "(('x', '/opt/other/x.bc'),)"}

    assert differing(a, b) == {"n": ("1", None)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels, each compiled for two targets."""
    folder = tmp_path_factory.mktemp("runs")
    return recorded_passes(folder, ("softmax", "sm_80"), ("matmul", "sm_80"), ("matmul", "sm_90")).path


def compared(run: Path, *args: str) -> tuple[int, str]:
    done = tracing("passes", str(run), str(run), *args, runs=run.parent)
    assert not done.stderr, done.stderr
    return done.returncode, words(done.stdout)


def test_a_run_compared_with_itself_is_equal(recorded: Path) -> None:
    status, table = compared(recorded)
    one_status, one = compared(recorded, "--kernel", "softmax", "--changed")

    assert (status, one_status) == (0, 0)
    assert len(re.findall(r" equal$", table, re.MULTILINE)) == 3
    assert "the IR is equal after every pass" in one
    assert "ttir equal, ttgir equal, llir equal, ptx equal, cubin equal" in one


def test_one_kernel_for_two_targets_parts_where_the_target_s_own_dot_is_chosen(recorded: Path) -> None:
    status, text = compared(recorded, "--kernel", "matmul#1", "--kernel", "matmul#2", "--changed")

    assert status == 1
    assert re.search(r"the IR first differs after tritongpu-accelerate-matmul \(\d+ \| \d+\): b has", text)
    assert "+1 ttng.warp_group_dot" in text
    assert "option arch: 'sm80' | 'sm90'" in text
    assert "attribute ttg.target: " in text
    assert "\n+ %total" in text  # the diff at the divergence


def test_the_ir_of_both_after_one_pass_is_shown_on_request(recorded: Path) -> None:
    kernels = ("--kernel", "matmul#1", "--kernel", "matmul#2")

    _, before = compared(recorded, *kernels, "--pass", "tritongpu-coalesce")
    _, after = compared(recorded, *kernels, "--pass", "allocate-shared-memory-nv")

    assert re.search(r"after tritongpu-coalesce \(\d+ \| \d+\) the IR is equal", before)
    assert "--- a: after 5" in after


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--op", "tt.dot"), "--op is about one run"),
        (("--kernel", "nothing"), "has no kernel nothing"),
        (
            ("--kernel", "softmax", "--kernel", "matmul#1", "--kernel", "matmul#2"),
            "take one kernel each, and 3 are given",
        ),
    ],
)
def test_options_for_a_single_run_are_refused_for_two_runs(
    recorded: Path, args: tuple[str, ...], message: str
) -> None:
    done = tracing("passes", str(recorded), str(recorded), *args, runs=recorded.parent)

    assert done.returncode == 2
    assert message in done.stderr


def test_a_run_of_another_triton_without_ir_is_refused_with_how_to_derive_it(tmp_path: Path) -> None:
    writer = new_run(tmp_path)  # which says that Triton 3 recorded it
    compiled(writer, "kernel", LOAD, ("ttir", "cse", LOAD), ("ttir", "sccp", LOAD))
    writer.close()
    never_recorded(writer.path, "passir")

    done = tracing("passes", str(writer.path), str(writer.path), runs=tmp_path)

    assert done.returncode == 2
    assert "was recorded with Triton 3, and here is" in done.stderr
    assert "make venv TORCH=2 TRITON=3 VENV=.venv-3" in done.stderr


def test_values_of_virtual_gpus_say_nothing_about_compilers(tmp_path: Path) -> None:
    run = store.Run(new_run(tmp_path).path)
    info = run.info
    assert says_nothing_of_compilers(run, run) is None  # "cpu", as the tests' runs say

    from msgspec.structs import replace

    virtual = replace(info, environment=replace(info.environment, device="virtual GPU"))
    a, b = store.Run(store.create(tmp_path, virtual).path), store.Run(store.create(tmp_path, virtual).path)
    warning = says_nothing_of_compilers(a, b)

    assert warning is not None
    assert "say nothing about the compilers" in warning.sentence
    assert warning.command == f"tracing passes {a.path} {b.path}"


def test_the_command_for_one_kernel_names_one_whose_ir_differs(tmp_path: Path) -> None:
    for name, ir in (("a", LOAD), ("b", FENCED)):
        writer = new_run(tmp_path / name)
        compiled(writer, "equal", LOAD, ("ttir", "cse", LOAD))
        compiled(writer, "add", ir, ("ttir", "cse", ir), number=1)
        writer.close()
    a, b = (str(store.recorded(tmp_path / name)[0]) for name in "ab")

    done = tracing("passes", a, b, runs=tmp_path)
    several = tracing("passes", a, b, "--pass", "cse", runs=tmp_path)
    one = tracing("passes", a, runs=tmp_path)

    assert done.stdout.splitlines()[-1] == f"one kernel: tracing passes {a} {b} --kernel add"
    assert one.stdout.splitlines()[-1] == f"one kernel's passes: tracing passes {a} --kernel equal"
    assert several.returncode == 2 and "--kernel equal" in several.stderr and "--kernel add" in several.stderr
