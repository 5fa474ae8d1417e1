"""The accused component in words."""

from __future__ import annotations

from typing import get_args

import pytest

from tracing.analyze.compare.accused import AccusedKind
from tracing.report.compare.comparison_json import accused_text


@pytest.mark.parametrize("kind", get_args(AccusedKind))
def test_every_kind_of_accused_names_the_kernel(kind: str) -> None:
    text = accused_text({"kind": kind, "name": "copy", "argument": "out_ptr"})

    assert text.endswith(" copy out_ptr")


def test_code_is_the_code_of_a_kernel() -> None:
    assert accused_text({"kind": "code", "name": "copy", "argument": None}) == "the compiled code of copy"
