"""What replays of a launch prove about a difference between two runs, from counts and digests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from handmade.records import launch

from tracing.analyze.replay.replay_verdict import (
    CodeDiffers,
    InputsChanged,
    InputsDiffer,
    NeedsOtherMemory,
    NeedsSurroundings,
    NotComparable,
    NothingRecorded,
    NotReproduced,
    ReplaysDiffer,
    Reproduced,
    UndecidedReplay,
    left_as,
    verdict,
)
from tracing.model import (
    DifferingElements,
    Digest,
    KernelArg,
    KernelLaunch,
    MemoryEvidence,
    ReplayResult,
    ReplaySeries,
    SeriesDifference,
    Side,
)
from tracing.report.replay import payload_text, replay_json, replay_text, verdict_text

ALL = DifferingElements("y", 4, 4, ((0, 4),), 0.0)


def left(*bits: str) -> tuple[dict[str, Digest], ...]:
    return tuple({"y": Digest(one, one[:3])} for one in bits)


def series(*bits: str, launched: Side = "a", inputs: Side = "a", **fields: Any) -> ReplaySeries:
    """A series of replays with these result bits; a single argument means two equal replays."""
    varying = (ALL,) if len(set(bits)) > 1 else ()
    rest = {"varying": varying, "unwritten": (), "written": {}} | fields
    return ReplaySeries(launched, inputs, left(*(bits if len(bits) > 1 else 2 * bits)), **rest)


def result(*some: ReplaySeries) -> ReplayResult:
    pairs = [(i, j) for j in range(len(some)) for i in range(j) if some[i].outcomes[0] != some[j].outcomes[0]]
    return ReplayResult("", some, tuple(SeriesDifference(pair, (ALL,)) for pair in pairs))


def recorded(a: str, b: str | None = None) -> dict[Side, dict[str, Digest]]:
    digests: dict[Side, dict[str, Digest]] = {"a": left(a)[0]}
    return digests if b is None else {**digests, "b": left(b)[0]}


def test_replays_that_differ_from_each_other_race() -> None:
    racing = series("xxx", "yyy", "xxx")

    assert verdict(result(racing), recorded("xxx", "yyy"), ()) == ReplaysDiffer((racing,))


def test_a_race_in_one_run_is_attributed_to_that_run() -> None:
    quiet, racing = series("xxx", "xxx"), series("xxx", "yyy", launched="b")

    assert verdict(result(quiet, racing), recorded("xxx", "yyy"), ()) == ReplaysDiffer((racing,))


def test_different_results_of_equal_inputs_are_attributed_to_the_code() -> None:
    answer = verdict(result(series("xxx"), series("yyy", launched="b")), recorded("xxx", "yyy"), ())

    assert answer == CodeDiffers("a", (ALL,))


def test_inputs_that_make_the_difference_are_named() -> None:
    own, other = series("xxx"), series("yyy", inputs="b")

    assert verdict(result(own, other), recorded("xxx", "yyy"), ["x"]) == InputsDiffer(("x",))


def test_code_that_differs_on_the_same_inputs_comes_before_inputs_that_differ() -> None:
    four = [
        series("xxx"),
        series("yyy", launched="b"),
        series("zzz", inputs="b"),
        series("www", "www", launched="b", inputs="b"),
    ]

    assert verdict(result(*four), recorded("xxx", "www"), ["x"]) == CodeDiffers("a", (ALL,))


@pytest.mark.parametrize(("always", "appeared", "missing"), [("xxx", "a", "b"), ("yyy", "b", "a")])
def test_a_result_that_never_appears_needs_its_surroundings(
    always: str, appeared: Side, missing: Side
) -> None:
    answer = verdict(result(series(always, always)), recorded("xxx", "yyy"), ())

    assert answer == NeedsSurroundings(appeared, missing)


def test_a_result_of_other_inputs_that_is_not_reproduced_needs_its_surroundings() -> None:
    own, other = series("xxx"), series("zzz", inputs="b")

    assert verdict(result(own, other), recorded("xxx", "yyy"), ["x"]) == NeedsSurroundings("a", "b")


@pytest.mark.parametrize("left_by", [("xxx", None), ("xxx", "yyy")])
def test_a_result_that_no_run_recorded_was_not_reproduced(left_by: tuple[str, str | None]) -> None:
    assert verdict(result(series("zzz")), recorded(*left_by), ()) == NotReproduced()


@pytest.mark.parametrize("left_by", [("xxx", None), ("xxx", "xxx")])
def test_a_result_that_was_recorded_is_reproduced(left_by: tuple[str, str | None]) -> None:
    assert verdict(result(series("xxx")), recorded(*left_by), ()) == Reproduced()


def test_inputs_that_do_not_recur_are_named() -> None:
    said = verdict(result(series("zzz")), recorded("xxx", "yyy"), (), ["x"])

    assert said == InputsChanged(("x",))
    assert (
        verdict_text(said, {"a": "a", "b": "b"})
        == "not reproduced: when recorded anew, x held other contents"
    )


def test_an_input_that_changed_without_effect_on_the_result_is_no_failure() -> None:
    assert verdict(result(series("xxx")), recorded("xxx", None), (), ["scratch"]) == Reproduced()


def test_without_digests_nothing_can_be_compared() -> None:
    assert verdict(result(series("xxx")), {"a": {}}, ()) == NothingRecorded()


def test_elements_that_depend_on_other_memory_do_not_affect_the_remaining_elements() -> None:
    partly = series("xxx+++", unwritten=(ALL,), written={"y": (0,)})

    assert left_as(partly, left("xxx---")[0]) == 2
    assert left_as(partly, left("zzz---")[0]) == 0
    assert verdict(result(partly), recorded("xxx---", "xxx==="), ()) == NeedsOtherMemory()


def test_a_result_whose_ranges_all_depend_on_other_memory_is_undecided() -> None:
    hidden = series("xxx", unwritten=(ALL,), written={"y": ()})

    assert left_as(hidden, left("zzz")[0]) is None
    assert verdict(result(hidden), recorded("zzz"), ()) == UndecidedReplay()
    assert verdict(result(hidden), recorded("zzz", "yyy"), ()) == NeedsOtherMemory()


def test_elements_that_the_launch_does_not_write_make_no_verdict_undecided_where_they_are_known() -> None:
    known = series("xxx", untouched=(ALL,), written={"y": ()}, completed=("y",))
    unknown = series("xxx", untouched=(ALL,), written={"y": ()})

    assert verdict(result(known), recorded("xxx"), ()) == Reproduced()
    assert verdict(result(known), recorded("zzz"), ()) == NotReproduced()
    assert verdict(result(known), recorded("xxx", "yyy"), ()) == NotComparable()
    assert verdict(result(unknown), recorded("zzz"), ()) == NotComparable()


# ---- the printed verdict


def printed(replays: ReplayResult, left_by: dict[Side, dict[str, Digest]]) -> str:
    names: dict[Side, str] = {side: side for side in left_by}
    launches = {side: launch(number) for number, side in enumerate(names, 3)}
    said = verdict(replays, left_by, ())
    assert replay_json(replays, said, left_by, launches)["launch"] == {
        side: one.index for side, one in launches.items()
    }
    return "\n".join(replay_text(replays, said, left_by, launches, names))


@pytest.mark.parametrize("left_by", [recorded("xxx"), {"a": {}}])
def test_a_recorded_race_is_not_refuted_by_equal_replays(left_by: dict[Side, dict[str, Digest]]) -> None:
    replays = result(series("xxx", "xxx"))
    launches: dict[Side, KernelLaunch] = {"a": launch(3)}
    race = MemoryEvidence(3, "race", ("y",), "program (0, 0, 0) writes y[7]", "k.py:3")
    said = verdict(replays, left_by, ())

    text = "\n".join(replay_text(replays, said, left_by, launches, {"a": "the run"}, [race]))

    assert "memory: race: program (0, 0, 0) writes y[7] (k.py:3)" in text
    assert "the race does not show in replays" in text and "deterministic" not in text
    assert replay_json(replays, said, left_by, launches, [race])["verdict"] == "race"


def test_the_counts_are_printed_after_the_verdict() -> None:
    text = printed(result(series("xxx", "yyy", "xxx")), recorded("xxx", "yyy"))

    assert "the kernel is not deterministic: replays of a on equal bytes differ from each other" in text
    assert "launch #3 of a on the inputs of a:" in text
    assert "1 of 2 further replays (between 9% and 91% at 95% confidence) differ from the first" in text
    assert "2 of 3 reproduce the recorded bits of a, 1 of 3 reproduce the recorded bits of b" in text
    assert "y: 4 of 4 elements, 0:4" in text


def test_elements_that_the_launch_does_not_write_are_printed_with_their_range() -> None:
    text = printed(result(series("xxx", untouched=(ALL,))), recorded("xxx"))

    assert "deterministic: every replay reproduces the recorded bits" in text
    assert "not written by this launch, and so not compared:\n    y: 4 of 4 elements, 0:4" in text


def test_replays_of_both_launches_are_counted_if_the_code_differs() -> None:
    text = printed(result(series("xxx"), series("yyy", launched="b")), recorded("xxx", "yyy"))

    assert (
        "its code differs: a and b produce different results on equal inputs, those of a, every time"
    ) in text
    assert "launch #4 of b on the inputs of a:" in text
    assert "the interpreter executes the source of both kernels" in text
    assert "0 of 2 reproduce the recorded bits of a, 2 of 2 reproduce the recorded bits of b" in text


def test_launches_with_another_scalar_are_said_to_be_launched_differently() -> None:
    a, b = (
        msgspec.structs.replace(launch(3), args=(KernelArg("factor", "in", value=value),))
        for value in (1.5, 2.5)
    )
    sides: dict[Side, KernelLaunch] = {"a": a, "b": b}
    replays, left_by = result(series("xxx"), series("yyy", launched="b")), recorded("xxx", "yyy")
    said = verdict(replays, left_by, ())

    text = "\n".join(replay_text(replays, said, left_by, sides, {"a": "a", "b": "b"}))

    assert "it is launched differently (factor): a and b produce different results on equal inputs" in text
    assert replay_json(replays, said, left_by, sides)["verdict"] == "configuration"


def test_equal_payloads_are_rounding_and_others_are_not() -> None:
    two = series("xxx"), series("yyy", launched="b")

    assert "replays produce equal payloads: the difference is rounding" in "\n".join(
        payload_text(result(series("xxx", "xxx")))
    )
    assert "different payloads: not only rounding" in "\n".join(payload_text(result(series("xxx", "yyy"))))
    assert "y: 4 of 4 elements" in "\n".join(payload_text(result(*two)))
