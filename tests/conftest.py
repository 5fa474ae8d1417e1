"""Fixtures of every test module: private compiler caches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says more about what else the machine does than about the test
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(autouse=True, scope="module")
def private_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A warm cache would skip the compiler under test, and tests must not leave a cache."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            patch.setenv(variable, str(tmp_path_factory.mktemp(variable)))
        yield
