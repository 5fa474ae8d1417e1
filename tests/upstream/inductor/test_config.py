"""Inductor's settings."""

from __future__ import annotations

import pytest

from tracing.upstream.inductor import config as inductor_config


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_config.contract()


def test_an_unknown_setting_is_an_error() -> None:
    with pytest.raises(AttributeError), inductor_config.settings_changed({"no_such_setting": 1}):
        pass
