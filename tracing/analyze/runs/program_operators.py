"""Which calls of operators outside of Triton a line of the program makes to compute something."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracing.model import CallSite, TensorMeta
from tracing.model.library_files import is_library

# what they return may arrive after its digest was taken
ASYNCHRONOUS = ("c10d::", "_c10d_functional", "symm_mem::")
_IN_PLACE = re.compile(r"\w_(\.|$)|out$")  # "aten::add_.Tensor", "aten::mm.out", "aten::eq.Tensor_out"


def is_check(name: str, writes: Sequence[TensorMeta]) -> bool:
    """True if a call makes truth values, as of `isfinite`: the program looks at values, and changes none."""
    return all(one.dtype == "bool" for one in writes) and _IN_PLACE.search(name) is None


def is_of_program(site: CallSite | None) -> bool:
    """True if a line of the program makes the call, not one of torch or of another library."""
    return site is not None and not is_library(site.file)
