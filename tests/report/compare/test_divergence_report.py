"""The sentences about the cause of a divergence."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from handmade.records import arg, launch

from tracing.analyze.compare.cause_kinds import Host, OperatorCause, OtherResults
from tracing.analyze.compare.divergence_kinds import InputDiffers, LaunchDiffers, LaunchPair
from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.compare.signature_pair import SettingChange
from tracing.model import CallSite, Digest
from tracing.report.compare.cause import cause_text
from tracing.report.compare.divergence import divergence_text, elements_text


def sentences(operator: str) -> list[str]:
    cause = OperatorCause(
        (operator,) * 2, ("", ""), "ab", proven=True, how=OtherResults("not deterministic", (0, 0))
    )
    return [*cause_text(cause, ("a", "b"))]


def test_an_operator_that_is_not_deterministic_is_named_with_its_deterministic_form() -> None:
    first, switch = sentences("aten::index_add_")

    assert first == "aten::index_add_(): inputs are equal, results differ: this operator is not deterministic"
    assert "torch.use_deterministic_algorithms(True)" in switch


def test_attention_has_other_backends() -> None:
    *_, last = sentences("aten::_scaled_dot_product_cudnn_attention_backward")

    assert "sdpa_kernel" in last


def test_a_custom_operator_has_no_deterministic_form_in_torch() -> None:
    assert len(sentences("mine::scatter")) == 1


def test_an_operator_that_draws_random_numbers_needs_a_seed_and_no_deterministic_form() -> None:
    cause = OperatorCause(
        ("aten::rand",) * 2, ("size=[4]",) * 2, "ab", proven=True, how=OtherResults("random", (0, 0))
    )

    first, advice = cause_text(cause, ("a", "b"))

    assert first == "aten::rand(size=[4]): inputs are equal, and it drew other random numbers"
    assert "seed" in advice


def test_the_writer_is_named_and_operators_after_it_copy_or_compute() -> None:
    through = ("aten::addmm.out", "aten::copy_")  # the last one first
    cause = OperatorCause(("aten::add_",) * 2, ("1", "2"), "ab", proven=True, through=through)

    writers, which, passed = cause_text(cause, ("a", "b"))

    assert writers == "aten::add_ wrote an input of aten::copy_ last, with other arguments:"
    assert which == "(1) in a, (2) in b"
    assert passed == "then aten::copy_ copies it, then aten::addmm.out computes with it"


def test_two_operators_that_wrote_a_tensor_are_both_named() -> None:
    cause = OperatorCause(("aten::add_", "aten::mul_"), ("1", "[2, 3]"), "ab", proven=True)

    assert list(cause_text(cause, ("good", "bad"))) == [
        "different operators wrote this tensor last:",
        "aten::add_(1) in good, aten::mul_([2, 3]) in bad",
    ]


def test_an_operator_that_is_not_proven_to_be_the_cause_is_one_of_the_suspects_that_are_listed() -> None:
    cause = OperatorCause(
        ("aten::randn",) * 2, ("size=[4]",) * 2, "ab", proven=False, through=("aten::mm",),
        also=("aten::randn(size=[8])",), numbers=(1, 2), draws=("", "aten::randn(size=[4])"),
    )  # fmt: skip

    assert list(cause_text(cause, ("a", "b"))) == [
        "aten::randn(size=[4]) wrote an input of aten::mm last in both runs:"
        " call 1 of it in a, call 2 of it in b",
        "before it, only b draws random numbers by aten::randn(size=[4])",
        "then aten::mm computes with it",
        "cannot be decided: the cause is aten::randn, aten::randn(size=[8]), aten::mm,"
        " or code outside of Triton and torch",
    ]


def test_the_line_of_an_operator_follows_it_before_the_draw_of_another_one() -> None:
    site = CallSite(0, "/p.py", 7, "step")
    cause = OperatorCause(
        ("aten::randn",) * 2, ("",) * 2, "ab", proven=False, sites=(site, site),
        draws=("", "aten::rand(), called at /p.py:3 in step"),
    )  # fmt: skip

    assert list(cause_text(cause, ("a", "b")))[:3] == [
        "aten::randn() wrote this tensor last in both runs",
        "called at /p.py:7 in step",
        "before it, only b draws random numbers by aten::rand(), called at /p.py:3 in step",
    ]


def test_all_operators_that_only_one_run_calls_are_named() -> None:
    cause = OperatorCause(("", "aten::copy_"), ("", ""), "b", proven=True, also=("aten::mul(2)",))

    assert list(cause_text(cause, ("a", "b"))) == [
        "aten::copy_() wrote this tensor last, outside of Triton, only in b",
        "aten::mul(2) wrote other parts of it, only there, too",
    ]


def test_code_that_changed_the_result_of_an_operator_is_the_cause_and_not_the_operator() -> None:
    assert list(cause_text(Host("b", None, operator="aten::randn"), ("a", "b"))) == [
        "aten::randn wrote this tensor last, with equal bits in both runs;",
        "code outside of Triton and torch changed those bits afterwards, in b",
    ]


def test_the_line_that_calls_an_operator_is_named() -> None:
    line = CallSite(0, "/train.py", 10, "step")
    cause = OperatorCause(("", "aten::fill_"), ("", "value=1"), "b", proven=True, sites=(None, line))

    assert [*cause_text(cause, ("a", "b"))][-1] == "called at /train.py:10 in step"


def test_lines_that_differ_between_runs_are_both_named() -> None:
    lines = CallSite(0, "/train.py", 10, "step"), CallSite(0, "/train.py", 12, "step")
    cause = OperatorCause(("aten::mul_", "aten::add_"), ("", ""), "ab", proven=True, sites=lines)

    named = [*cause_text(cause, ("a", "b"))][-1]
    assert named == "called at /train.py:10 in step in run a, at /train.py:12 in step in run b"


def differing_input() -> InputDiffers:
    a, b = (launch(3, arg("x", "in", word)) for word in "ab")
    cause = OperatorCause(("aten::add_",) * 2, ("1", "2"), "ab", proven=True)
    return InputDiffers(LaunchPair(0, a, b), 0, cause)


def test_a_later_divergence_is_not_said_to_be_independent() -> None:
    title = str(next(divergence_text(differing_input(), first=False)))

    assert title.startswith("✗ another divergence, which those above do not explain: launch #3")


def test_a_later_launch_with_other_settings_may_follow_from_the_first() -> None:
    pair = LaunchPair(0, launch(3), launch(3))
    differs = LaunchDiffers(pair, (SettingChange("grid", "1", "2"),), None, False, ())

    assert str(next(divergence_text(differs, first=False))).startswith("✗ another divergence: launch #3")


def test_another_source_of_a_kernel_that_is_launched_differently_names_what_differs() -> None:
    changes = (SettingChange("grid", "1", "2"), SettingChange("n", "8", "9"))
    differs = LaunchDiffers(
        LaunchPair(0, launch(3), launch(3)), changes, CodeDifference("source", ()), False, ()
    )

    text = [str(line) for line in divergence_text(differs, first=True)]

    assert "    → the kernel's source differs" in text
    assert "    → the program launches this kernel differently, too: grid, n" in text


def test_a_range_of_elements_is_where_some_of_them_differ() -> None:
    divergence = differing_input()
    sides = [
        msgspec.structs.replace(
            one, args=(msgspec.structs.replace(one.args[0], before=Digest("b", tiles=tiles)),)
        )
        for one, tiles in ((divergence.pair.launch, "123"), (divergence.pair.launch, "456"))
    ]

    assert elements_text(replace(divergence, pair=LaunchPair(0, *sides))) == "somewhere in 0:4 of 4"
