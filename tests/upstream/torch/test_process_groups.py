"""Process groups by name."""

from __future__ import annotations

import pytest

from tracing.upstream.torch import process_groups


def test_the_contract_holds_with_the_installed_versions() -> None:
    process_groups.contract()


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        process_groups.group_named("no such group")
