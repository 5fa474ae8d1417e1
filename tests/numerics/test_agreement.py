"""Whether a compiled case agrees with eager in all of its results; the worst result is named first."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tracing.model import Container, PlainValue, Uncomparable
from tracing.numerics.agreement import agreement, outcome_of
from tracing.numerics.referee import Referee, Results
from tracing.numerics.reference import Expected
from tracing.numerics.verdict import judge
from tracing.numerics.verdict_text import judged_text
from tracing.program.structure import facts_of

X = torch.arange(4.0)


def outcome(actual: Any, expected: Any) -> tuple[str, str]:
    verdict = outcome_of(facts_of(actual, "output"), facts_of(expected, "output"))
    return verdict.status, verdict.detail


def test_results_within_the_tolerances_of_assert_close_agree() -> None:
    assert outcome(X + 1e-6, X) == ("passed", "the result agrees with eager")
    assert outcome((X, 0.1 + 1e-8), (X, 0.1)) == ("passed", "all 2 results agree with eager")


def unable() -> Results:
    raise RuntimeError("not implemented in float64")


@pytest.mark.parametrize(
    ("actual", "status"), [(X * 2e-6, "not decided"), (X * 1.01e-6, "passed"), (X * 2, "differs")]
)
def test_values_too_small_for_fixed_tolerances_are_not_decided_without_a_reference(
    actual: torch.Tensor, status: str
) -> None:
    referee = Referee(unable, unable, lambda stage: None)
    verdict = outcome_of(facts_of(actual, "output"), facts_of(X * 1e-6, "output"), referee)

    assert verdict.status == status
    assert "no reference: RuntimeError: not implemented in float64" in verdict.detail


def test_integers_from_the_bits_of_computed_numbers_are_not_decided() -> None:
    def bits() -> Results:
        return {"output": X.sin().view(torch.int32) & 0xFF}

    referee = Referee(bits, bits, lambda stage: None)
    actual = {"output": (bits()["output"] + 1) & 0xFF}

    verdict = outcome_of(facts_of(actual["output"], "output"), facts_of(bits()["output"], "output"), referee)

    assert verdict.status == "not decided"
    assert "because of a view as torch.int32, whose last bits rounding decides" in verdict.detail


def test_a_branch_that_rounding_decides_is_not_decided() -> None:
    def branch() -> Results:
        above = (X.sin().square() + X.cos().square() - 1).sum() > 0
        return {"output": torch.cond(above, lambda x: x * 1.1, lambda x: x * 1.2, (X,))}

    referee = Referee(branch, branch, lambda stage: None)
    eager = branch()["output"]

    verdict = outcome_of(facts_of(eager * 1.1, "output"), facts_of(eager, "output"), referee)

    assert verdict.status == "not decided"
    assert "because of cond, which rounding decides" in verdict.detail


@pytest.mark.parametrize(("actual", "alone"), [((X + 1, X), True), ((X + 1, 7), False), ((X, X), False)])
def test_tolerances_decide_where_each_wrong_result_has_no_reference(actual: Any, alone: bool) -> None:
    referee = Referee(unable, unable, lambda stage: None)

    answer = agreement(facts_of(actual, "output"), facts_of((X, X), "output"), referee)

    assert answer.by_tolerances is alone


def test_results_of_eager_that_are_off_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Expected(X.double(), torch.zeros(4, dtype=torch.float64), ())
    referee = Referee(unable, unable, lambda stage: None)
    monkeypatch.setattr(referee, "judge", lambda name, compiled, eager: judge(compiled, eager, exact))

    verdict = outcome_of(facts_of((X, X), "output"), facts_of((X, X * 1.1), "output"), referee)

    assert verdict.status == "passed"
    assert verdict.detail.startswith("the compiled results are right; eager's agree, except for output[1]")


@pytest.mark.parametrize(
    ("actual", "expected", "beginning"),
    [
        (X, None, "output: compiled gives a tensor of torch.float32, eager gives None"),
        (X.double(), X, "output: compiled gives torch.float64, eager gives torch.float32; its values agree"),
        (
            X.double() + 1,
            X,
            "output: compiled gives torch.float64, eager gives torch.float32; its values",
        ),
        ((X, X), (X,), "output: compiled gives tuple of 2, with [1], eager gives tuple of 1"),
        ([X], (X,), "output: compiled gives list of 1, eager gives tuple of 1"),
        ({"a": 1}, {"a": True}, "output['a']: compiled gives 1, eager gives True"),
        (
            {"a": X},
            {"b": X},
            "output: compiled gives dict of 1, with ['a'], eager gives dict of 1, with ['b']",
        ),
        (0.5, 0.6, "output: compiled gives 0.5, eager gives 0.6"),
        ("a", "b", "output: compiled gives 'a', eager gives 'b'"),
    ],
)
def test_a_different_structure_or_value_disagrees(actual: object, expected: object, beginning: str) -> None:
    status, detail = outcome(actual, expected)

    assert (status, detail[: len(beginning)]) == ("differs", beginning)


def test_results_that_differ_in_strides_or_dtype_only_are_listed() -> None:
    x = torch.rand(4, 3)
    actual = (x, x.double(), x.t().contiguous().t(), x.t().contiguous().t() + 1, x.double() + 1)
    verdict = outcome_of(facts_of(actual, "output"), facts_of((x,) * 5, "output"))

    assert sorted(verdict.differing) == [f"output[{n}]" for n in (1, 2, 3, 4)]
    assert sorted(verdict.laid_out) == ["output[1]", "output[2]"]


def test_values_are_compared_although_strides_differ() -> None:
    status, detail = outcome(torch.ones(3, 2).t(), torch.zeros(2, 3))

    assert status == "differs"
    assert detail.startswith("output: compiled gives strides (1, 2), eager gives (3, 1); ")
    assert "Mismatched elements: 6 / 6" in detail


def test_the_worst_result_comes_first_and_a_handful_of_others_is_named() -> None:
    expected = [torch.ones(4)] * 8
    actual = [torch.ones(4) + (0.5 if i == 5 else 0.1) for i in range(8)]

    _, detail = outcome(actual, expected)

    assert detail.startswith("output[5]: Tensor-likes are not close!")
    assert detail.endswith("; also output[0], output[1], output[2], output[3], output[4] and 2 more")


def test_a_nan_where_eager_has_none_is_worse_than_any_number() -> None:
    _, detail = outcome([X + 100, torch.full((4,), float("nan"))], [X, X])

    assert detail.startswith("output[1]: ") and detail.endswith("; also output[0]")


def test_results_that_cannot_be_compared_are_named() -> None:
    facts = facts_of(X, "output") | {"output.lock": Uncomparable("lock", "")}

    assert outcome_of(facts, facts).detail == "the result agrees with eager; not compared: output.lock"


def test_a_result_of_which_nothing_can_be_compared_is_not_decided() -> None:
    facts = facts_of((one for one in [X]), "output")
    kept = facts | {"parameter w": X}

    assert (outcome_of(facts, facts).status, outcome_of(kept, kept).status) == ("not decided", "not decided")
    assert "nothing that it returns can be compared: output (generator)" in outcome_of(facts, facts).detail
    compiled = facts_of(iter((X,)), "output")
    assert (outcome_of(compiled, facts).status, outcome_of(facts, compiled).status) == (
        "not decided",
        "differs",
    )
    texts = facts_of(("a", None), "output") | {"output[2]": Uncomparable("lock", "")}
    assert outcome_of(texts, texts).status == "passed"
    assert outcome_of(facts | {"grad of w": X}, facts | {"grad of w": X}).status == "passed"


def test_a_case_without_results_does_not_agree() -> None:
    assert "nothing was compared with eager" in outcome(None, None)[1]


def test_the_state_of_an_optimizer_with_a_compiled_step_is_no_disagreement() -> None:
    eager = {"output": X, "stepped Adam.state": Container("dict", ())}
    compiled = {"output": X}

    assert outcome_of(compiled, eager).status == "passed"
    assert outcome_of(compiled, {"output": X, "lr": PlainValue("float", "1.0")}).status == "differs"


def test_a_result_that_is_off_on_average_has_no_single_wrong_element() -> None:
    exact = torch.rand(1000, dtype=torch.float64) + 1
    expected = Expected(exact, torch.zeros_like(exact))
    compiled = (exact + 20 * torch.finfo(torch.float32).eps).float()

    assert judged_text(judge(compiled, exact.float(), expected)).endswith(
        " on average, where rounding explains 8"
    )


def test_integers_are_printed_in_full_and_have_no_roundings() -> None:
    exact = torch.tensor([1, 17179869192])
    expected = Expected(exact, torch.zeros(2, dtype=torch.float64))
    text = judged_text(judge(torch.tensor([1, 17179869190]), exact, expected))

    assert text.startswith("compiled is off: [1] is 17179869190, where exact arithmetic gives 17179869192;")
    assert "rounding" not in text
