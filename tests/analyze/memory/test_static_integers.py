"""Integers of 64 bits in the accesses that IR shows."""

from __future__ import annotations

from tracing.analyze.memory.static_accesses import static_accesses

TTIR = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i64) {
    %at = tt.addptr %p, %n : !tt.ptr<f32>, i64
    %x = tt.load %at : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_an_integer_above_the_largest_signed_one_has_its_bits() -> None:
    [access] = static_accesses(TTIR, ["p", "n"], {"n": 2**64 - 2}, (1, 1, 1))

    assert access.elements.tolist() == [-2]
