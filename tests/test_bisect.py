"""The search over one layer, and over the passes of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.bisect import FirstBad, Judgement, Layer, Step, Undecided, first_bad, optional
from tracing.analyze.judge import CommandJudge
from tracing.analyze.probes import Compiled, Probes


def row(count: int, verdict: Callable[[int], str]) -> Layer:
    """A layer of `count` steps whose builds are judged by how many of them are on."""

    def probe(on: int, *, again: bool = False) -> Judgement:
        return Judgement(verdict(on), f"{on} on")  # type: ignore[arg-type]

    return Layer("passes", [Step(10 * i, f"pass-{i}") for i in range(count)], "no pass", probe)


@given(st.integers(8, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_the_step_that_turns_good_into_bad_is_found_in_twice_the_logarithm_of_probes(
    at: tuple[int, int],
) -> None:
    count, culprit = at

    found = first_bad(row(count, lambda on: "bad" if on > culprit else "good"))

    assert isinstance(found, FirstBad)
    assert (found.position, found.step.index) == (culprit, 10 * culprit)
    assert len(found.tried) <= 2 + ceil(log2(count)) <= 2 * log2(count)


@given(st.integers(2, 40), st.data())
def test_with_probes_that_cannot_be_judged_the_answer_is_right_or_none(
    count: int, data: st.DataObject
) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    unknown = data.draw(st.sets(st.integers(1, count - 1)))

    found = first_bad(row(count, lambda on: "skip" if on in unknown else "bad" if on > culprit else "good"))

    if isinstance(found, FirstBad):
        assert found.position == culprit
    else:
        assert unknown & {culprit, culprit + 1}
        assert f"pass-{culprit}" in found.because


def test_a_layer_that_is_bad_with_all_steps_off_is_not_to_blame() -> None:
    found = first_bad(row(8, lambda on: "bad"))

    assert isinstance(found, Undecided)
    assert found.because == "no pass is bad as well (0 on)"
    assert [one.on for one in found.tried] == [8, 0]


def test_a_layer_that_is_good_with_all_steps_on_is_not_searched() -> None:
    found = first_bad(row(8, lambda on: "good"))

    assert isinstance(found, Undecided)
    assert found.because == "the build with every step is good (8 on), so nothing is to be found in it"


def test_a_layer_that_cannot_be_judged_with_all_steps_off_says_what_was_said() -> None:
    found = first_bad(row(8, lambda on: "skip" if on == 0 else "bad"))

    assert isinstance(found, Undecided)
    assert found.because == "no pass cannot be judged (0 on), so no build is known to be good"


def test_a_judge_that_contradicts_itself_gets_no_answer() -> None:
    asked: list[int] = []

    def moody(on: int) -> str:
        asked.append(on)
        return "bad" if on > 4 and asked.count(on) == 1 else "good"

    found = first_bad(row(8, moody))

    assert isinstance(found, Undecided)
    assert "the judge contradicts itself" in found.because


@given(st.lists(st.booleans(), max_size=30))
def test_what_can_be_left_out_is_found_with_one_compile_a_step(needed: list[bool]) -> None:
    tried: list[frozenset[int]] = []

    def compiles(dropped: frozenset[int]) -> bool:
        tried.append(dropped)
        return not any(needed[step] for step in dropped)

    found = optional(range(len(needed)), compiles)

    assert found == [step for step, need in enumerate(needed) if not need]
    assert len(tried) == len(needed)
    assert all(frozenset(found[on:]) in tried for on in range(len(found)))


def test_of_two_passes_that_only_together_can_be_left_out_the_later_one_stays() -> None:
    found = optional([3, 5], lambda dropped: dropped != {5})

    assert found == [3]


def test_two_builds_with_the_same_artefact_are_judged_once(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["false", "{ptx}"], ["ptx", "cubin"]))
    builds = [made(probes, [name], {"ptx": "ret;", "cubin": name}) for name in "ab"]

    verdicts = [probes.judgement(build).verdict for build in builds]

    assert verdicts == ["bad", "bad"]
    assert (probes.built, probes.judged) == (2, 1)


def test_what_was_built_and_judged_is_known_to_the_next_search(tmp_path: Path) -> None:
    first, second = (Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"])) for _ in range(2))
    first.judgement(made(first, ["x"], {"ptx": "ret;"}))

    assert second.judgement(made(second, ["x"], {"ptx": "other"})).verdict == "good"
    assert (second.built, second.judged) == (0, 0)


def test_another_command_judges_again(tmp_path: Path) -> None:
    first, second = (Probes(tmp_path, CommandJudge([word, "{ptx}"], ["ptx"])) for word in ("true", "false"))
    first.judgement(made(first, ["x"], {"ptx": "ret;"}))

    assert second.judgement(made(second, ["x"], {"ptx": "ret;"})).verdict == "bad"


def test_a_script_that_changed_judges_again(tmp_path: Path) -> None:
    script, verdicts = tmp_path / "check.sh", []
    for line in ("exit 0", "exit 1"):
        script.write_text(line)
        probes = Probes(tmp_path, CommandJudge(["sh", str(script), "{ptx}"], ["ptx"]))
        verdicts.append(probes.judgement(made(probes, ["x"], {"ptx": "ret;"})).verdict)

    assert verdicts == ["good", "bad"]


def test_a_failed_build_cannot_be_told_and_keeps_its_reason(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"]))
    for _ in range(2):
        build = probes.build(["x"], lambda: Compiled({}, "pass 7 aborted"))

    assert probes.judgement(build) == Judgement("skip", "pass 7 aborted")
    assert probes.built == 1


def test_a_build_that_ran_out_of_time_is_tried_again(tmp_path: Path) -> None:
    probes = Probes(tmp_path, CommandJudge(["true", "{ptx}"], ["ptx"]))
    for _ in range(2):
        build = probes.build(["x"], lambda: Compiled({}, "too slow", final=False))

    assert build.failure == "too slow"
    assert probes.built == 2


def made(probes: Probes, key: Sequence[str], artefacts: dict[str, str | bytes]):  # type: ignore[no-untyped-def]
    return probes.build(key, lambda: Compiled(artefacts))
