"""The sentences about the cause of a divergence."""

from __future__ import annotations

from tracing.analyze.compare.divergence_kinds import OperatorCause
from tracing.report.compare.cause import cause_text


def sentences(operator: str) -> list[str]:
    cause = OperatorCause((operator,) * 2, ("", ""), "ab", proven=True, not_deterministic=True)
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
    cause = OperatorCause(("aten::rand",) * 2, ("size=[4]",) * 2, "ab", proven=True, random=True)

    first, advice = cause_text(cause, ("a", "b"))

    assert first == "aten::rand(size=[4]): inputs are equal, and it drew other random numbers:"
    assert "seed" in advice


def test_the_writer_is_named_and_operators_after_it_copy_or_compute() -> None:
    through = ("aten::addmm.out", "aten::copy_")  # the last one first
    cause = OperatorCause(("aten::add_",) * 2, ("1", "2"), "ab", proven=True, through=through)

    writers, which, passed = cause_text(cause, ("a", "b"))

    assert writers == "different operators wrote an input of aten::copy_ last:"
    assert which == "aten::add_(1) in a, aten::add_(2) in b"
    assert passed == "then aten::copy_ copies it, then aten::addmm.out computes with it"
