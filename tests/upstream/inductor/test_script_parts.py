"""Templates of the scripts of `tracing minify`: their imports exist in the installed versions."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import script_parts


def test_the_contract_holds_with_the_installed_versions() -> None:
    script_parts.contract()


def test_a_name_that_a_script_imports_and_torch_lacks_breaks_the_contract(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = script_parts.KERNELS.replace("run_and_get_code", "run_and_get_nothing")
    monkeypatch.setattr(script_parts, "KERNELS", text)

    with pytest.raises(Broken, match="run_and_get_nothing"):
        script_parts.contract()
