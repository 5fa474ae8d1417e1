"""What every test module has: compiler caches of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def private_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A warm cache would skip the compiler that is tested, and tests must leave none behind."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            patch.setenv(variable, str(tmp_path_factory.mktemp(variable)))
        yield
