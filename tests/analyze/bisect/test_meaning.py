"""IR executed on generated memory: no pass changes the results, and a fault does."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from recorded.runs import recorded_passes

from tracing.analyze.bisect.execution import Change, argument_names, difference, first_change, meaning
from tracing.analyze.passes.pass_table import passes_of
from tracing.compiler.generic_text import generic_texts
from tracing.mlir.machine import MachineLaunch
from tracing.mlir.types import Unknown, constant, integers, rounded, type_of
from tracing.model import Compilation

KERNELS = [
    ("softmax", "sm_80"),
    ("matmul", "sm_80"),
    ("matmul", "sm_90"),
    ("attention", "sm_100"),
    ("attention", "gfx942"),
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    """Of each kernel every IR up to LLVM's dialect, in generic form."""
    run = recorded_passes(tmp_path_factory.mktemp("runs"), *KERNELS)
    by_kernel = {}
    for kernel, compilation in zip(KERNELS, run.records(Compilation), strict=True):
        passes = [one for one in passes_of(run, compilation) if one.stage in ("ttir", "ttgir")]
        blobs = dict.fromkeys(blob for one in passes for blob in (one.before, one.after or ""))
        by_kernel[kernel] = generic_texts([run.text(blob) for blob in blobs], seconds=60)
    return by_kernel


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
def test_no_pass_changes_what_a_kernel_computes(
    kernel: tuple[str, str], texts: dict[tuple[str, str], list[str]]
) -> None:
    row = texts[kernel]

    assert len(row) > 5
    assert first_change(len(row), row.__getitem__) == len(row) - 1
    assert len(meaning(row[-1])) > 50


FAULTS = {
    "a minimum": ("softmax", '"arith.maxnumf"', '"arith.minnumf"'),
    "one element too many": ("softmax", "<{predicate = 2 : i64}>", "<{predicate = 3 : i64}>"),
    "another constant": ("softmax", "0xFF800000", "0.000000e+00"),
    "operands swapped": ("softmax", r'"arith.subf"\((%\d+), (%\d+)\)', r'"arith.subf"(\2, \1)'),
    "another axis": ("matmul", r'get_program_id"\(\) <\{axis = 0', 'get_program_id"() <{axis = 1'),
    "a wait that is too short": ("matmul", r"<\{num = 2 : i32\}>", "<{num = 3 : i32}>"),
    "a step that is too long": ("matmul", "value = 32 : i32", "value = 64 : i32"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_located_in_the_first_faulty_ir(
    fault: str, texts: dict[tuple[str, str], list[str]]
) -> None:
    kernel, pattern, replacement = FAULTS[fault]
    row = texts[kernel, "sm_80"]
    first = next(at for at, text in enumerate(row) if re.search(pattern, text) and at > 2)
    faulty = [*row[:first], *(re.sub(pattern, replacement, text) for text in row[first:])]

    change = first_change(len(faulty), faulty.__getitem__)

    assert isinstance(change, Change)
    assert (change.before, change.after) == (first - 1, first)
    assert re.fullmatch(r"argument \d\[-?\d+\] is .*, and was.*", change.what)


MASKED = """
tt.func public @scale(%x: !tt.ptr<f32>, %n: i32) {
  %factor = arith.constant dense<1.500000e+00> : tensor<32xf32>
  %o = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %sizes = tt.splat %n : i32 -> tensor<32xi32>
  %mask = arith.cmpi slt, %o, %sizes : tensor<32xi32>
  %starts = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %at = tt.addptr %starts, %o : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %loaded = tt.load %at, %mask : tensor<32x!tt.ptr<f32>>
  %scaled = arith.mulf %loaded, %factor : tensor<32xf32>
  tt.store %at, %scaled, %mask : tensor<32x!tt.ptr<f32>>
  tt.return
}
"""


def masked(*replaced: str) -> list[str]:
    return generic_texts([MASKED, MASKED.replace(*replaced)], seconds=60)


def test_a_mask_is_compared_with_the_sizes_of_a_recorded_launch() -> None:
    row = masked("slt", "sle")
    recorded = [MachineLaunch(0, (0, 0, 0), (1, 1, 1), {1: 20})]

    assert first_change(2, row.__getitem__) == 1
    assert first_change(2, row.__getitem__, ["x", "n"], recorded) == Change(
        0, 1, "x[20] is stored, and was not"
    )


def test_a_recorded_launch_that_cannot_be_executed_is_left_out() -> None:
    row = masked("slt", "sle")
    recorded = [MachineLaunch(0, (0, 0, 0), (1, 1, 1), {1: 1 << 40})]

    assert first_change(2, row.__getitem__, ["x", "n"], recorded) == 1


def test_without_sums_a_small_difference_is_a_change() -> None:
    row = masked("1.500000e+00", "1.501000e+00")

    assert isinstance(first_change(2, row.__getitem__), Change)


def test_a_fault_that_only_large_numbers_show_is_a_change() -> None:
    bound = MASKED.replace("arith.mulf", "arith.minnumf")
    row = generic_texts([bound, bound.replace("1.500000e+00", "2.500000e+00")], seconds=60)

    assert isinstance(first_change(2, row.__getitem__), Change)


def test_ir_that_cannot_be_executed_is_said_with_its_operation() -> None:
    row = [masked("slt", "slt")[0], *(text.replace("mulf", "unheard_of") for text in masked("slt", "sle"))]

    with pytest.raises(Unknown, match=r"no later IR can be executed: .*unheard_of"):
        first_change(len(row), row.__getitem__)


def test_a_fault_next_to_ir_that_cannot_be_executed_is_located_as_narrowly_as_possible(
    texts: dict[tuple[str, str], list[str]],
) -> None:
    row = texts["softmax", "sm_80"]
    strange = row[4].replace('"math.exp"', '"math.unheard_of"')
    faulty = [*row[:4], strange, *(text.replace("maxnumf", "minnumf") for text in row[5:])]

    change = first_change(len(faulty), faulty.__getitem__)

    assert isinstance(change, Change)
    assert (change.before, change.after) == (3, 5)


def test_an_unknown_operation_is_not_executed(texts: dict[tuple[str, str], list[str]]) -> None:
    with pytest.raises(Unknown, match=r"math\.unheard_of"):
        meaning(texts["softmax", "sm_80"][0].replace('"math.exp"', '"math.unheard_of"'))


def test_a_value_is_named_by_the_argument_of_its_kernel() -> None:
    ir = """
      tt.func public @copy(%x_ptr: !tt.ptr<f32> loc("x_ptr"), %arg1: !tt.ptr<f32>, %n: i32) attributes {}
    """

    assert argument_names(ir) == ["x_ptr", "argument 1", "n"]
    assert difference({(0, 0, 7): 1.0}, {(0, 0, 7): 2.0}, argument_names(ir)) == "x_ptr[7] is 2, and was 1"


def test_sums_in_another_order_mean_the_same() -> None:
    a = {(0, 1, 0): 100.0, (0, 1, 1): 0.01}

    assert difference(a, {(0, 1, 0): 100.5, (0, 1, 1): 0.02}) == ""
    assert difference(a, {(0, 1, 0): 110.0, (0, 1, 1): 0.01}) == "argument 1[0] is 110, and was 100"
    assert "is not stored, and was" in difference(a, {(0, 1, 0): 100.0})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dense<1> : tensor<2xi32>", [1, 1]),
        ("dense<[1.0, 2.5]> : tensor<2xf16>", [1.0, 2.5]),
        ("dense<0xFF800000> : tensor<1xf32>", [-float("inf")]),
        ("dense<true> : tensor<2xi1>", [True, True]),
        ("0xFF80 : bf16", -float("inf")),
        ("-7 : i64", -7),
        ("false", False),
    ],
)
def test_a_constant_is_read(text: str, value: Sequence[float] | float) -> None:
    assert constant(text).tolist() == value


def test_types_and_attributes_are_read() -> None:
    pointers = type_of("tensor<4x8x!tt.ptr<f16>, #blocked>")
    memory = type_of("!ttg.memdesc<2x16xf32, #shared, #smem, mutable, 2x64>")

    assert (pointers.shape, pointers.pointee) == ((4, 8), "f16")
    assert (memory.shape, memory.element) == ((2, 16), "f32")
    assert integers("array<i32: 1, 0>") == (1, 0)
    assert rounded(1.00390625, type_of("bf16")).item() == 1.0
