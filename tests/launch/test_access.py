"""The roles of pointer arguments, inferred from TTIR that is compiled for sm_90; this needs no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.compiler import CompiledKernel

from tracing.launch.roles import declared


@pytest.fixture
def roles(compiled: Callable[..., CompiledKernel]) -> Callable[..., dict[str, str]]:
    def roles(kernel: Any, **signature: Any) -> dict[str, str]:
        kernel = compiled(kernel, **signature)
        return dict(declared(kernel.asm["ttir"], kernel.src.signature).roles)

    return roles


@pytest.fixture
def addresses(compiled: Callable[..., CompiledKernel]) -> Callable[..., set[str]]:
    def addresses(kernel: Any, **signature: Any) -> set[str]:
        kernel = compiled(kernel, **signature)
        return set(declared(kernel.asm["ttir"], kernel.src.signature).addresses)

    return addresses


@triton.jit
def add(x, y, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) + tl.load(y + i, mask=i < n), mask=i < n)


def test_loads_are_reads_and_stores_are_writes(roles) -> None:
    inferred = roles(add, x="*fp32", y="*fp32", out="*fp32", n="i32")

    assert inferred == {"x": "in", "y": "in", "out": "out"}


@triton.jit
def add_in_place(x, y):
    tl.store(x, tl.load(x) + tl.load(y))


def test_an_argument_read_and_written_is_in_out(roles) -> None:
    assert roles(add_in_place, x="*fp32", y="*fp32") == {"x": "in_out", "y": "in"}


@triton.jit
def fill(out, unused, value):
    tl.store(out, value)


def test_a_pointer_that_is_never_used_is_none(roles) -> None:
    assert roles(fill, out="*fp32", unused="*fp32", value="fp32") == {"out": "out", "unused": "none"}


@triton.jit
def count(x, counter, lock):
    tl.atomic_add(counter + tl.load(x), 1)
    tl.atomic_cas(lock, 0, 1)


def test_atomics_read_and_write(roles) -> None:
    inferred = roles(count, x="*i32", counter="*i32", lock="*i32")

    assert inferred == {"x": "in", "counter": "in_out", "lock": "in_out"}


@triton.jit
def copy_rows(source, out, n):
    for _ in range(n):
        tl.store(out, tl.load(source))
        source += 8
        out += 8


def test_pointers_that_a_loop_increments_are_distinguished(roles) -> None:
    assert roles(copy_rows, source="*fp32", out="*fp32", n="i32") == {"source": "in", "out": "out"}


@triton.jit
def last_of_list(next_index, out):
    p, other = next_index, out
    while tl.load(p) >= 0:
        p += tl.load(p)
        other += 1
    tl.store(other, 1)


def test_pointers_that_a_while_loop_carries_are_distinguished(roles) -> None:
    assert roles(last_of_list, next_index="*i32", out="*i32") == {"next_index": "in", "out": "out"}


@triton.jit
def swap_buffers(ping, pong, n):
    for _ in range(n):
        tl.store(pong, tl.load(ping))
        ping, pong = pong, ping


def test_a_loop_that_swaps_two_pointers_accesses_both_as_either(roles) -> None:
    assert roles(swap_buffers, ping="*fp32", pong="*fp32", n="i32") == {"ping": "in_out", "pong": "in_out"}


@triton.jit
def choose(x, y, chooser, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(tl.where(tl.load(chooser + i) > 0, x + i, y + i)))


def test_a_chosen_pointer_may_be_either_and_is_not_the_condition(roles) -> None:
    inferred = roles(choose, x="*fp32", y="*fp32", chooser="*fp32", out="*fp32")

    assert inferred == {"x": "in", "y": "in", "chooser": "in", "out": "out"}


@triton.jit
def branch(x, y, n):
    if n == 3:
        p = x + tl.load(y)
        tl.store(p, 0)
    else:
        p = y
    tl.atomic_add(p, 1)


def test_a_pointer_assigned_in_both_branches_may_be_either(roles) -> None:
    assert roles(branch, x="*i32", y="*i32", n="i32") == {"x": "in_out", "y": "in_out"}


@triton.jit
def return_early(x, y, z, n):
    p, q = x, z
    if n == 3:
        if tl.load(z) > 3:
            return
        p, q = y, z + 1
    tl.store(p, tl.load(q))


def test_pointers_that_a_branch_passes_on_are_distinguished(roles) -> None:
    """A return inside an if becomes cf.cond_br, whose targets have block arguments."""
    inferred = roles(return_early, x="*fp32", y="*fp32", z="*fp32", n="i32")

    assert inferred == {"x": "out", "y": "out", "z": "in"}


@triton.jit(noinline=True)
def copy(source, out):
    tl.store(out, tl.load(source))


@triton.jit
def copy_twice(x, y, z):
    copy(x, y)
    copy(y, z)


def test_a_call_is_followed_with_its_own_arguments(roles) -> None:
    assert roles(copy_twice, x="*fp32", y="*fp32", z="*fp32") == {"x": "in", "y": "in_out", "z": "out"}


@triton.jit(noinline=True)
def either(x, y, n):
    if n == 3:
        return x
    return y


@triton.jit
def store_in_either(x, y, z, n):
    tl.store(either(x, y, n) + 1, tl.load(either(z, z, n)))


def test_a_pointer_that_a_call_returns_is_followed(roles) -> None:
    inferred = roles(store_in_either, x="*fp32", y="*fp32", z="*fp32", n="i32")

    assert inferred == {"x": "out", "y": "out", "z": "in"}


@triton.jit
def copy_tile(x, y, n):
    source = tl.make_tensor_descriptor(x, [n, 64], [64, 1], [16, 64])
    out = tl.make_tensor_descriptor(y, [n, 64], [64, 1], [16, 64])
    out.store([0, 0], source.load([0, 0]))


def test_a_descriptor_made_in_the_kernel_is_its_pointer(roles) -> None:
    assert roles(copy_tile, x="*fp32", y="*fp32", n="i32") == {"x": "in", "y": "out"}


@triton.jit
def copy_descriptor(source, n, out, total):
    out.store([0, n], source.load([0, n]))
    total.atomic_add([0, n], source.load([0, n]))


@pytest.mark.parametrize("capability", [80, 90])
def test_a_descriptor_argument_has_one_role(roles, capability: int) -> None:
    """In TTIR it is followed by its shape and strides, and before sm_90 it is a pointer."""
    tile = "tensordesc<fp32[16, 64]>"

    inferred = roles(copy_descriptor, capability=capability, source=tile, n="i32", out=tile, total=tile)

    assert inferred == {"source": "in", "out": "out", "total": "in_out"}


@triton.jit
def follow(table, out):
    tl.store(out, tl.load(tl.load(table).to(tl.pointer_type(tl.float32))))


def test_an_access_through_a_loaded_address_makes_the_table_unknown(roles) -> None:
    assert roles(follow, table="*i64", out="*fp32") == {"table": "unknown", "out": "out"}


@triton.jit
def store_in_assembly(table, x):
    remote = tl.load(table).to(tl.pointer_type(tl.int32))
    tl.inline_asm_elementwise(
        "st.b32 [$1], $2; mov.b32 $0, 0;", "=r,l,r", [remote, tl.load(x)], tl.int32, False, 1
    )


def test_assembly_that_uses_a_loaded_address_makes_the_table_unknown(roles) -> None:
    assert roles(store_in_assembly, table="*i64", x="*i32") == {"table": "unknown", "x": "in"}


@triton.jit
def gather_rows(index, x, out):
    row = tl.load(index)
    tl.store(out, tl.load(x + row * 8))


def test_a_loaded_offset_is_not_an_address(roles) -> None:
    assert roles(gather_rows, index="*i64", x="*fp32", out="*fp32") == {
        "index": "in",
        "x": "in",
        "out": "out",
    }


@triton.jit
def align(x, out):
    aligned = (x.to(tl.int64) + 15) & -16
    tl.store(out, tl.load(aligned.to(tl.pointer_type(tl.float32))))


def test_an_address_is_followed_through_integer_arithmetic(roles) -> None:
    assert roles(align, x="*fp32", out="*fp32") == {"x": "in", "out": "out"}


@triton.jit
def leak(x, table):
    tl.store(table, x.to(tl.int64))


def test_an_address_that_is_stored_makes_its_argument_unknown(roles) -> None:
    assert roles(leak, x="*fp32", table="*i64") == {"x": "unknown", "table": "out"}


@triton.jit
def load_in_assembly(x, y, out):
    read = tl.inline_asm_elementwise("ld.global.b32 $0, [$1];", "=r,l", [x], tl.int32, is_pure=False, pack=1)
    kept = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(y)], tl.int32, is_pure=True, pack=1)
    tl.store(out, read + kept)


def test_inline_assembly_makes_addresses_unknown_but_not_data(roles) -> None:
    inferred = roles(load_in_assembly, x="*i32", y="*i32", out="*i32")

    assert inferred == {"x": "unknown", "y": "in", "out": "out"}


@triton.jit
def rename(x, y, n):
    chosen = x
    if n == 2:
        chosen = y
    tl.store(chosen, 3.0)


def test_arguments_that_the_text_renames_keep_their_names(roles) -> None:
    assert roles(rename, x="*fp32", y="*fp32", n="i32") == {"x": "out", "y": "out"}


@triton.jit
def copy_member(pair, n):
    tl.store(pair[1], tl.load(pair[0]) + n)


def test_members_of_a_tuple_have_roles_of_their_own(roles) -> None:
    assert roles(copy_member, pair=("*i32", "*i32"), n="i32") == {"pair.0": "in", "pair.1": "out"}


RECURSION = """
tt.func public @outer(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  tt.call @inner(%x) : (!tt.ptr<f32>) -> ()
  %0 = tt.load %y : !tt.ptr<f32>
  tt.return
}
tt.func private @inner(%p: !tt.ptr<f32>) {
  tt.call @inner(%p) : (!tt.ptr<f32>) -> ()
  tt.return
}
"""


def test_an_address_passed_to_a_recursive_function_makes_its_argument_unknown() -> None:
    assert declared(RECURSION, {"x": "*fp32", "y": "*fp32"}).roles == {"x": "unknown", "y": "in"}


OPERATION_NOBODY_KNOWS = """
tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %0 = builtin.unrealized_conversion_cast %x : !tt.ptr<f32> to i64
  %1 = tt.load %y : !tt.ptr<f32>
  %2 = builtin.unrealized_conversion_cast %1 : f32 to i64
  tt.return
}
"""


def test_an_unknown_operation_makes_addresses_unknown_but_not_data() -> None:
    inferred = declared(OPERATION_NOBODY_KNOWS, {"x": "*fp32", "y": "*fp32"}).roles

    assert inferred == {"x": "unknown", "y": "in"}


def test_text_that_is_not_ttir_is_refused() -> None:
    with pytest.raises(ValueError, match="MLIR refuses"):
        declared("not a module", {})


def test_a_signature_of_another_kernel_is_refused(compiled) -> None:
    kernel = compiled(fill, out="*fp32", unused="*fp32", value="fp32")

    with pytest.raises(ValueError, match="TTIR of fill has 2 pointer arguments, its signature 1: out"):
        declared(kernel.asm["ttir"], {"out": "*fp32", "n": "i32"})


# ---- addresses ----


@triton.jit
def load_at(address, n, out):
    i = tl.arange(0, 16)
    source = address.to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(source + i * n))


def test_an_integer_that_becomes_a_pointer_holds_an_address(addresses) -> None:
    assert addresses(load_at, address="i64", n="i64", out="*fp32") == {"address"}


@triton.jit
def load_at_an_offset(address, stride, out):
    source = (address + tl.program_id(0) * stride).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(source))


def test_an_offset_that_is_a_product_is_no_address(addresses) -> None:
    assert addresses(load_at_an_offset, address="i64", stride="i64", out="*fp32") == {"address"}


@triton.jit
def load_through_table(table, lengths, out):
    i = tl.program_id(0)
    source = tl.load(table + i).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(source + at, mask=at < tl.load(lengths + i)))


def test_a_table_of_pointers_holds_addresses_and_its_lengths_do_not(addresses, roles) -> None:
    signature = {"table": "*i64", "lengths": "*i64", "out": "*fp32"}

    assert addresses(load_through_table, **signature) == {"table"}
    assert roles(load_through_table, **signature) == {"table": "unknown", "lengths": "in", "out": "out"}


@triton.jit
def gather(x, index, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


def test_indices_are_no_addresses(addresses) -> None:
    assert addresses(gather, x="*fp32", index="*i64", out="*fp32") == set()


@triton.jit
def align_at_an_offset(x, index, out):
    aligned = ((x.to(tl.int64) + tl.load(index)) & -16).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(aligned))


def test_a_number_added_to_a_pointer_is_an_offset(addresses) -> None:
    assert addresses(align_at_an_offset, x="*fp32", index="*i64", out="*fp32") == set()


@triton.jit
def follow_list(address, n, out):
    for _ in range(n):
        address = tl.load(address.to(tl.pointer_type(tl.int64)))
    tl.store(out, address)


def test_an_address_is_followed_through_loops(addresses) -> None:
    assert addresses(follow_list, address="i64", n="i32", out="*i64") == {"address"}


@triton.jit
def load_pair(pair, out):
    tl.store(out, tl.load(pair[1].to(tl.pointer_type(tl.float32))))


def test_members_of_a_tuple_hold_addresses_of_their_own(addresses) -> None:
    assert addresses(load_pair, pair=("i64", "i64"), out="*fp32") == {"pair.1"}


@triton.jit
def load_after_descriptor(descriptor, n, address, out):
    i = tl.arange(0, 16)
    value = tl.load(address.to(tl.pointer_type(tl.float32)) + i)
    tl.store(out + i, value + tl.sum(descriptor.load([0, 0]), 0) + n)


def test_an_address_after_a_descriptor_is_recognised(addresses) -> None:
    signature = {"descriptor": "tensordesc<fp32[16, 16]>", "n": "i64", "address": "i64", "out": "*fp32"}

    assert addresses(load_after_descriptor, **signature) == {"address"}
