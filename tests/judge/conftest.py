"""A virtual GPU for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planted_kernels import virtual_gpu

from tracing.program.device import Device


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with virtual_gpu() as device:
        yield device
