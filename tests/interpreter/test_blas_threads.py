"""While a kernel is executed, a matrix product has one thread; after it, as many as before."""

from __future__ import annotations

import numpy as np
import pytest

from tracing.interpreter import blas_threads


def test_numpys_products_have_one_thread_inside_and_as_many_as_before_outside() -> None:
    libraries = blas_threads._libraries()
    if not libraries:
        pytest.skip(f"numpy {np.__version__} has no OpenBLAS")
    before = [one.get() for one in libraries]
    for one in libraries:
        one.set(2)

    with pytest.raises(ZeroDivisionError), blas_threads.one_blas_thread():
        inside = {one.get() for one in libraries}
        raise ZeroDivisionError
    outside = {one.get() for one in libraries}
    for one, count in zip(libraries, before, strict=True):
        one.set(count)

    assert (inside, outside) == ({1}, {2})


def test_without_openblas_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_threads, "_libraries", tuple)

    with blas_threads.one_blas_thread():
        product = np.ones((8, 8)) @ np.ones((8, 8))

    assert product[0, 0] == 8
