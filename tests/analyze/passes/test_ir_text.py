"""Equal modules have equal canonical text, and different modules have different text."""

from __future__ import annotations

import pytest

from tracing.analyze.passes.ir_text import canonical, plain, unordered

MODULE = """\
#blocked = #ttg.blocked<{order = [0]}>
#loc = loc("k.py":1:1)
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc(#loc)) attributes {noinline = false} {
    %c = arith.constant 1 : i32 loc(#loc)
    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #blocked> loc(#loc)
    %s = tt.splat %c : i32 -> tensor<8xi32, #blocked> loc(#loc)
    %a = arith.addi %r, %s : tensor<8xi32, #blocked> loc(#loc)
    nvvm.barrier0 loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
RENAMED = (
    MODULE.replace("%r", "%0")
    .replace("%a ", "%rows_1 ")
    .replace("#blocked", "#layout")
    .replace("k.py", "o.py")
)
LINES = MODULE.splitlines(keepends=True)


def moved(line: str, *, after: str) -> str:
    """MODULE with one line moved to after another line."""
    one = next(each for each in LINES if line in each)
    rest = [each for each in LINES if each is not one]
    at = next(number for number, each in enumerate(rest) if after in each) + 1
    return "".join([*rest[:at], one, *rest[at:]])


def says(text: str) -> str:
    return canonical(plain(text))


def test_names_of_values_and_layouts_and_locations_do_not_count() -> None:
    assert says(RENAMED) == says(MODULE)


def test_an_operation_that_mlir_renamed_is_the_same() -> None:
    assert says(MODULE.replace("nvvm.barrier0", "nvvm.barrier")) == says(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("arith.addi %r, %s", "arith.addi %s, %r"),
        ("arith.addi", "arith.subi"),
        ("order = [0]", "order = [1]"),
        ("tt.divisibility = 16", "tt.divisibility = 8"),
        ("    nvvm.barrier0 loc(#loc)\n", ""),
        ("%c = arith.constant 1", "%c = arith.constant 2"),
    ],
)
def test_a_different_operation_or_attribute_is_a_difference(old: str, new: str) -> None:
    changed = MODULE.replace(old, new)

    assert changed != MODULE
    assert says(changed) != says(MODULE)
    assert unordered(plain(changed)) != unordered(plain(MODULE))


def test_attributes_of_modules_and_functions_are_kept_separately() -> None:
    text = plain(MODULE.replace("noinline = false", 'noinline = false, map = {a = "x, y", b = [1, 2]}'))

    assert says(MODULE) == canonical(text)
    assert text.attributes == {
        "ttg.num-warps": "4 : i32",
        "ttg.target": '"cuda:90"',
        "@k noinline": "false",
        "@k map": '{a = "x, y", b = [1, 2]}',
    }
    assert "tt.divisibility" in text.text


@pytest.mark.parametrize("quote", ["", '"'])
def test_the_module_that_defines_a_helper_does_not_count(quote: str) -> None:
    call = "    tt.call @{0}{1}.act__fp32S8S{0}(%a) : (tensor<8xf32>) -> ()\n"
    a, b, other = (
        MODULE.replace("    nvvm.barrier0", call.format(quote, module) + "    nvvm.barrier0")
        for module in ("torch._inductor.runtime.compile_tasks.c6yt5qm", "kern", "kern")
    )

    assert says(a) == says(b)
    assert "@" + quote + "act__fp32S8S" in says(a)
    assert says(a) != says(other.replace("act__fp32S8S", "act__fp16S8S"))


def test_operations_without_effects_may_be_reordered() -> None:
    other = plain(moved("%c = arith", after="tt.make_range"))

    assert canonical(other) != says(MODULE)
    assert unordered(other) == unordered(plain(MODULE))


def test_operations_with_effects_may_not() -> None:
    stores = MODULE.replace(
        "    nvvm.barrier0 loc(#loc)\n", "    tt.store %x, %a loc(#loc)\n    nvvm.barrier0 loc(#loc)\n"
    )
    lines = stores.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "tt.store" in line)
    swapped = "".join([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])

    assert unordered(plain(swapped)) != unordered(plain(stores))
