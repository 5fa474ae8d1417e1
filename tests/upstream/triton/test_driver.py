"""The active driver of Triton."""

from __future__ import annotations

import pytest

from tracing.upstream.triton import driver


def test_the_contract_holds_with_the_installed_versions() -> None:
    driver.contract()


def test_the_previous_driver_is_restored_after_an_exception() -> None:
    previous = driver.active_driver()

    with pytest.raises(ValueError, match="left"), driver.driven_by(object()):
        raise ValueError("left")

    assert driver.active_driver() is previous
