"""Kernels whose source is Gluon or a file with IR, instead of Triton's Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from data import gluon_kernels, kernels
from recorded import case_kernels

from tracing.analyze.passes.compilations import compilation
from tracing.analyze.passes.pass_table import passes_of
from tracing.model import Derivation
from tracing.store import Run

STAGES = {"gluon": ["ttgir", "llir"], "ttir": ["ttgir", "llir"], "ttgir": ["llir"]}  # the stages with passes
EACH = 6  # compilation is resumed from every n-th pass
KINDS = [(kind, target) for kind in STAGES for target in ("sm_90", "gfx942")]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, case_kernels.Source, Run]:
    kind, target = request.param
    source = written(kind, target, tmp_path_factory.mktemp("ir"))
    return kind, target, source, case_kernels.recorded([source], target, tmp_path_factory.mktemp("runs"))


def written(kind: str, target: str, folder: Path) -> case_kernels.Source:
    if kind == "gluon":
        return case_kernels.Source(gluon_kernels.source(kernels.TARGETS[target].warp_size))
    file = folder / f"softmax.{kind}"
    file.write_text(str(kernels.compiled("softmax", target)[kind]))
    return case_kernels.Source(str(file))


def test_its_passes_are_recorded_and_its_artefacts_untouched(
    recorded: tuple[str, str, case_kernels.Source, Run],
) -> None:
    kind, target, source, run = recorded

    assert list(dict.fromkeys(one.stage for one in passes_of(run, compilation(run)))) == STAGES[kind]
    assert case_kernels.not_identical(run, [source], target) == []


def test_the_ir_between_its_passes_is_derived(recorded: tuple[str, str, case_kernels.Source, Run]) -> None:
    assert [one.differs for one in recorded[3].records(Derivation)] == [""]


def test_resuming_reproduces_the_recorded_artefacts(
    recorded: tuple[str, str, case_kernels.Source, Run],
) -> None:
    tried, different = case_kernels.not_resumed(recorded[3], compilation(recorded[3]), EACH)

    assert tried > 3 and different == []


def test_the_compilation_has_its_language_and_constants(
    recorded: tuple[str, str, case_kernels.Source, Run],
) -> None:
    kind, _, _, run = recorded
    recorded_compilation = compilation(run)

    assert recorded_compilation.language == ("gluon" if kind == "gluon" else "triton")
    assert recorded_compilation.constants.get("BLOCK") == (
        "1024" if kind == "gluon" else None
    )  # IR has no parameters
