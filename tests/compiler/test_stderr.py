"""What of the compiler's output a message shows."""

from __future__ import annotations

import pytest

from tracing.compiler.stderr import errors_in

_SCOPE = '<scope = #llvm.di_subprogram<id = distinct[0]<>, file = <"k.py" in "/p">, line = 3>>'
_OUTER = f'fused<#llvm.di_lexical_block_file{_SCOPE}>["/p/k.py":34:12]'


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ('"k.py":3:4', '"k.py":3:4'),
        ('"x"("/p/k.py":3:4)', '"/p/k.py":3:4'),
        ('callsite("/p/k.py":3:4 at "/p/main.py":5:6)', '"/p/k.py":3:4'),
        (f'callsite(fused{_SCOPE}["x"("/p/k.py":3:4)] at {_OUTER})', '"/p/k.py":3:4'),
        ("unknown", "unknown"),
    ],
)
def test_an_error_has_the_innermost_position_of_its_location(location: str, shown: str) -> None:
    printed = f"a note\nloc({location}): error: loc(it) has no layout\n"

    assert errors_in(printed) == f"loc({shown}): error: loc(it) has no layout"
