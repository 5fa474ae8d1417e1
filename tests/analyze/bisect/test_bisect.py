"""The search over one layer of a compilation, and the cache of its builds and judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.bisect.judge import CommandJudge
from tracing.analyze.bisect.probes import Compiled, Probes
from tracing.analyze.bisect.search import (
    Contradiction,
    FirstBad,
    Judgement,
    Layer,
    Step,
    Undecided,
    answer_of,
    first_bad,
)


def row(count: int, verdict: Callable[[int], str]) -> Layer:
    """A layer of `count` steps whose builds are judged by how many of them are on."""

    def probe(on: int, *, anew: bool = False) -> Judgement:
        return Judgement(verdict(on), f"{on} on")  # type: ignore[arg-type]

    return Layer("passes", [Step(10 * i, f"pass-{i}") for i in range(count)], "no pass", probe)


@given(st.integers(8, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_the_first_bad_step_takes_at_most_twice_the_logarithm_of_probes(
    at: tuple[int, int],
) -> None:
    count, culprit = at

    tried: list[int] = []

    search = first_bad(row(count, lambda on: tried.append(on) or ("bad" if on > culprit else "good")))
    result = answer_of(search)

    assert isinstance(result, FirstBad)
    assert result.step.index == 10 * culprit
    assert len(tried) - 2 <= 2 + ceil(log2(count)) <= 2 * log2(count)  # two to confirm it


@given(st.integers(2, 40), st.data())
def test_with_probes_that_cannot_be_judged_the_answer_is_right_or_none(
    count: int, data: st.DataObject
) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    unknown = data.draw(st.sets(st.integers(1, count - 1)))

    search = first_bad(row(count, lambda on: "skip" if on in unknown else "bad" if on > culprit else "good"))
    result = answer_of(search)

    if isinstance(result, FirstBad):
        assert result.step.name == f"pass-{culprit}"
    else:
        assert unknown & {culprit, culprit + 1}
        assert f"pass-{culprit}" in {one.step.name for one in result.suspects}


def test_a_layer_that_is_bad_with_all_steps_off_is_not_to_blame() -> None:
    result = answer_of(first_bad(row(8, lambda on: "bad")))

    assert isinstance(result, Undecided)
    assert (result.because, result.ruled_out) == ("no pass is bad as well (0 on)", True)


def test_a_layer_that_is_good_with_all_steps_on_is_not_searched() -> None:
    result = answer_of(first_bad(row(8, lambda on: "good")))

    assert isinstance(result, Undecided)
    assert result.because == "the build with every step is good (8 on), so a search in it would find nothing"


def test_a_layer_that_cannot_be_judged_with_all_steps_off_reports_the_judges_reason() -> None:
    result = answer_of(first_bad(row(8, lambda on: "skip" if on == 0 else "bad")))

    assert isinstance(result, Undecided)
    assert result.because == "no pass cannot be judged (0 on), so no build is known to be good"
    assert not result.ruled_out


def test_a_judge_that_contradicts_itself_gets_no_answer() -> None:
    asked: list[int] = []

    def moody(on: int) -> str:
        asked.append(on)
        return "bad" if on > 4 and asked.count(on) == 1 else "good"

    with pytest.raises(Contradiction, match="asked once more, the build without"):
        answer_of(first_bad(row(8, moody)))


def test_a_step_without_whose_name_the_result_is_bad_as_well_is_no_answer() -> None:
    layer = replace(row(8, lambda on: "bad" if on > 3 else "good"), without=lambda name: Judgement("bad"))

    result = answer_of(first_bad(layer))

    assert isinstance(result, Undecided)
    assert [one.step.name for one in result.suspects] == ["pass-3"]


def test_two_builds_with_the_same_artefact_are_judged_once(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["false", "{ptx}"], ["ptx", "cubin"], 20))
    builds = [made(probes, [name], {"ptx": "ret;", "cubin": name}) for name in "ab"]

    verdicts = [probes.judgement(build).verdict for build in builds]

    assert verdicts == ["bad", "bad"]
    assert (probes.built, probes.judged) == (2, 1)


def test_builds_and_judgements_are_cached_for_the_next_search(tmp_path: Path) -> None:
    first, second = (Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"], 20)) for _ in range(2))
    first.judgement(made(first, ["x"], {"ptx": "ret;"}))

    assert second.judgement(made(second, ["x"], {"ptx": "other"})).verdict == "good"
    assert (second.built, second.judged) == (0, 0)
    assert not first.reused and second.reused


def test_a_different_command_ignores_cached_judgements(tmp_path: Path) -> None:
    first, second = (
        Probes(tmp_path, CommandJudge([word, "{ptx}"], ["ptx"], 20)) for word in ("true", "false")
    )
    first.judgement(made(first, ["x"], {"ptx": "ret;"}))

    assert second.judgement(made(second, ["x"], {"ptx": "ret;"})).verdict == "bad"


def test_a_script_that_changed_ignores_cached_judgements(tmp_path: Path) -> None:
    script, verdicts = tmp_path / "check.sh", []
    for line in ("exit 0", "exit 1"):
        script.write_text(line)
        probes = Probes(tmp_path, CommandJudge(["sh", str(script), "{ptx}"], ["ptx"], 20))
        verdicts.append(probes.judgement(made(probes, ["x"], {"ptx": "ret;"})).verdict)

    assert verdicts == ["good", "bad"]


def test_a_failed_build_is_skipped_and_its_reason_is_cached(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"], 20))
    for _ in range(2):
        build = probes.build(["x"], lambda: Compiled({}, "pass 7 aborted"))

    assert probes.judgement(build) == Judgement("skip", "pass 7 aborted")
    assert probes.built == 1


def test_a_build_that_timed_out_is_not_cached(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"], 20))
    for _ in range(2):
        build = probes.build(["x"], lambda: Compiled({}, "too slow", final=False))

    assert build.failure == "too slow"
    assert probes.built == 2


def test_a_build_of_another_compiler_is_not_reused(tmp_path: Path) -> None:
    judge = CommandJudge(["true", "{ptx}"], ["ptx"], 20)
    for compiler in ("mended", "faulty"):
        probes = Probes(tmp_path, judge, [compiler])
        build = made(probes, ["x"], {"ptx": compiler})

    assert (build.folder / "kernel.ptx").read_text() == "faulty"


def test_a_confirmation_builds_anew_and_judges_several_times(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"], 20))
    for _ in range(2):
        build = probes.build(["x"], lambda: Compiled({"ptx": "ret;"}), anew=True)
        probes.judgement(build, anew=True)

    assert (probes.built, probes.judged) == (2, 6)


def test_contradicting_judgements_of_one_build_are_skipped(tmp_path: Path) -> None:
    script = (
        f"test $(wc -l < {tmp_path}/log) -ne 2; status=$?; echo >> {tmp_path}/log; exit $status # {{ptx}}"
    )
    (tmp_path / "log").touch()
    probes = Probes(tmp_path, CommandJudge(["sh", "-c", script], ["ptx"], 20))

    judgement = probes.judgement(made(probes, ["x"], {"ptx": "ret;"}), anew=True)

    assert (judgement.verdict, judgement.detail) == (
        "skip",
        "the judge said good 2 times and bad 1 times of one build",
    )


def test_a_cleared_cache_builds_and_judges_anew(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"], 20))
    for _ in range(2):
        probes.judgement(made(probes, ["x"], {"ptx": "ret;"}))
        probes.forget()

    assert (probes.built, probes.judged, probes.known) == (2, 2, 0)


def made(probes: Probes, key: Sequence[str], artefacts: dict[str, str | bytes]):  # type: ignore[no-untyped-def]
    return probes.build(key, lambda: Compiled(artefacts))
