"""A program evaluated in float64 next to its own dtype: views, in-place operators, gradients, and gaps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed
import torch.nn.functional as functional
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention

from tracing.numerics.reference import Expected, reference
from tracing.numerics.rounding import Noise
from tracing.numerics.shadow import Shadow
from tracing.numerics.shadow_storages import ShadowStorages
from tracing.numerics.undeclared_effects import UndeclaredEffects
from tracing.numerics.verdict import judge


def followed(program: Callable[..., Any], *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The results of a program, and its results in float64."""
    shadow = Shadow()
    with shadow:
        result = program(*inputs)
    return result.detach(), shadow.of(result.detach())


class Named(torch.Tensor):
    """A subclass without a dispatch of its own."""


class Held(torch.nn.Parameter):
    """A subclass of parameters."""


def _in_place(x: torch.Tensor) -> torch.Tensor:
    x = x * 1.1
    x.t()[2:5].mul_(3).add_(0.3)
    x.view(-1)[::3] = x.sum() / 7
    return x


def _branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > -99, lambda x: (x * 1.1).sin(), lambda x: x.cos(), (x,)) * 0.3


def _gradient(program: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(program(x).sum(), x)[0] * 0.7


def _iterations(x: torch.Tensor) -> torch.Tensor:
    step = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, (x * 1.1).sin()), (step, x))[1] * 0.3


def _scanned(x: torch.Tensor) -> torch.Tensor:
    last, rows = scan(lambda c, r: ((c + r).tanh(), c * r), torch.zeros_like(x[0]), x)
    sums = associative_scan(lambda a, b: a + b * 0.1, x, 0, combine_mode="generic")
    mapped = torch._higher_order_ops.map(lambda row, last: (row + last).exp(), x, last)
    return rows + last + sums + mapped


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "pointwise": lambda x: (x.sin() * 1.1 + x.exp() / 3).tanh(),
    "in place": _in_place,
    "views": lambda x: x.unfold(1, 3, 2).permute(2, 0, 1).flatten(1) * 0.7,
    "reductions": lambda x: x.softmax(-1) @ functional.layer_norm(x, x.shape[1:]).t(),
    "convolution": lambda x: functional.conv1d(x[None], x[:, None, :3], groups=x.shape[0], padding=1),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "heads": lambda x: functional.scaled_dot_product_attention(*[x.view(1, 6, 2, 8).transpose(1, 2)] * 3),
    "complex": lambda x: torch.view_as_real(torch.fft.fft(x) * 0.3).square().sum(-1),
    "scatter": lambda x: torch.zeros_like(x).index_add(0, torch.tensor([1] * x.shape[0]), x / 3),
    "forward mode": lambda x: torch.func.jvp(lambda y: (y.sin() * 1.1).tanh() * 0.3, (x,), (x.cos(),))[1],
    "parameter": lambda x: (Held(x) * 1.1).sin().exp() * 0.7,
    "subclass": lambda x: ((x * 1.1).as_subclass(Named).sin() + x.exp()).as_subclass(torch.Tensor) * 0.7,
    "cond": _branches,
    "gradient of cond": lambda x: _gradient(_branches, x),
    "gradient of while_loop": lambda x: _gradient(_iterations, x),
    "gradient of scan": lambda x: _gradient(_scanned, x),
    "while_loop": _iterations,
    "scan": _scanned,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_shadow_equals_the_program_on_float64_inputs(name: str, dtype: torch.dtype) -> None:
    if name == "complex" and dtype == torch.bfloat16:
        pytest.skip("torch.fft has no bfloat16")
    x = torch.randn(6, 16, generator=torch.Generator().manual_seed(0)).to(dtype)

    result, exact = followed(PROGRAMS[name], x.clone())

    assert exact.dtype == torch.float64 and result.dtype == dtype
    torch.testing.assert_close(exact, PROGRAMS[name](x.double()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.exp().to(torch.bfloat16).float() * 3,
        lambda x: x.exp().t().reshape(-1) * 3,
        lambda x: x.exp().t().contiguous().flatten(),
    ],
)
def test_conversions_and_copies_in_inference_mode_are_followed(program: Callable[..., Any]) -> None:
    x = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        result, exact = followed(program, x)
    _, expected = followed(program, x)

    assert torch.equal(exact, expected) and not torch.equal(exact, result.double())


@pytest.mark.parametrize(
    "program",
    [
        lambda c: c.conj().imag * 3,
        lambda c: (c * c.conj()).real.sqrt(),
        lambda c: torch.view_as_real(c.mH @ c),
        lambda c: c.conj().mul_(1j).real + 0,
    ],
    ids=["negated", "product", "matrix product", "in place"],
)
def test_numbers_that_are_lazily_conjugated_are_followed(program: Any) -> None:
    torch.manual_seed(0)
    c = torch.randn(4, 4, dtype=torch.complex64)

    one = expected(lambda: program(c.clone()))

    exact = program(c.to(torch.complex128))
    assert torch.allclose(one.exact, exact, rtol=1e-12, atol=1e-12)
    assert bool((one.spread < 1e-5).all())


def test_integers_read_as_integers_of_another_size_are_exact() -> None:
    x = torch.tensor([1, -2, 1 << 40])
    shadow = Shadow()
    with shadow:
        result = (x * 3).view(torch.int32) + 1

    assert torch.equal(shadow.of(result), (x * 3).view(torch.int32) + 1)
    assert shadow.missing(result) == frozenset()


def _of_bytes(values: torch.Tensor) -> torch.Tensor:
    # as files are read
    return torch.frombuffer(bytearray(values.numpy().tobytes()), dtype=torch.uint8)


def test_bytes_read_as_numbers_are_exact_and_writing_to_these_is_followed() -> None:
    values = torch.randn(8)
    shadow = Shadow()
    with shadow:
        numbers = _of_bytes(values).view(torch.float32)
        numbers.mul_(1.1)
        result = numbers / 3

    torch.testing.assert_close(shadow.of(result), values.double() * 1.1 / 3, rtol=1e-12, atol=1e-12)
    assert shadow.missing(result) == frozenset()


def test_bytes_read_as_numbers_are_inputs_which_noise_perturbs() -> None:
    values = torch.randn(8)

    one = expected(lambda: _of_bytes(values).view(torch.float32) * 3)

    assert bool((one.spread > 0).all()) and bool((one.spread < 1e-5).all())


def test_the_bits_of_numbers_are_no_reference_also_when_read_as_numbers() -> None:
    shadow = Shadow()
    with shadow:
        bits = (torch.randn(8) * 3).view(torch.int32) + 1
        result = bits.view(torch.float32) * 2

    assert shadow.missing(result) == {"a view as torch.int32"}


def test_gradients_and_updates_are_followed() -> None:
    def train(dtype: torch.dtype) -> torch.nn.Module:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8)).to(dtype)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 8).to(dtype)).square().mean().backward()
            optimizer.step()
        return model

    shadow = Shadow()
    with shadow:
        model = train(torch.float32)
    exact = dict(train(torch.float64).named_parameters())

    for name, parameter in model.named_parameters():
        # the initial parameters and inputs are float32 numbers in both
        torch.testing.assert_close(shadow.of(parameter.detach()), exact[name].detach(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("needed", [one for one in product([True, False], repeat=3) if any(one)])
@pytest.mark.parametrize("norm", ["batch_norm", "layer_norm", "linear"])
def test_a_gradient_that_nothing_needs_is_left_out(norm: str, needed: tuple[bool, ...]) -> None:
    torch.manual_seed(0)
    numbers = [torch.rand(8, 4), torch.rand(4), torch.rand(4)]

    def gradients(dtype: torch.dtype) -> dict[str, torch.Tensor]:
        x, weight, bias = (
            one.clone().to(dtype).requires_grad_(own) for one, own in zip(numbers, needed, strict=True)
        )
        if norm == "linear":
            y = functional.linear(x, weight[None], bias[:1])
        elif norm == "batch_norm":
            y = functional.batch_norm(x, None, None, weight, bias, training=True)
        else:
            y = functional.layer_norm(x, (4,), weight, bias)
        y.pow(3).sum().backward()
        all_of_them = {"x": x.grad, "weight": weight.grad, "bias": bias.grad}
        return {name: one for name, one in all_of_them.items() if one is not None}

    known = reference(lambda: gradients(torch.float32), samples=3)

    for name, exact in gradients(torch.float64).items():
        torch.testing.assert_close(known[name].exact, exact, rtol=1e-6, atol=1e-6)


def expected(program: Callable[[], torch.Tensor]) -> Expected:
    return reference(lambda: {"output": program()}, samples=3)["output"]


def test_the_shadow_uses_the_random_numbers_of_the_program() -> None:
    def program() -> torch.Tensor:
        torch.manual_seed(0)
        return functional.dropout(torch.ones(64), 0.5) + torch.rand(64)

    reference = expected(program)

    assert reference.drawn
    torch.testing.assert_close(reference.exact.float(), program())


@pytest.mark.parametrize(
    ("returned", "unlike"),
    [
        ("x.half()", "float16, not float32"),
        ("x[:4]", "[4, 6], not [8, 6]"),
        ("x.t().contiguous().t()", "strides (1, 8), not (6, 1)"),
        ("x.clone()", ""),
        ("x[:1].clone()", "[1, 6], not [8, 6]"),
    ],
)
def test_a_result_that_the_fake_implementation_does_not_return_is_named(returned: str, unlike: str) -> None:
    effects: list[str] = []
    with torch.library._scoped_library("shadow_tests", "FRAGMENT") as library:
        library.define("other(Tensor x) -> Tensor")
        library.impl("other", eval(f"lambda x: ({returned}).clone()"), "CPU")
        library.impl("other", torch.empty_like, "Meta")
        program = torch.ops.shadow_tests.other
        reference(lambda: {"y": program(torch.ones(8, 6))}, undeclared=effects.append)

        with UndeclaredEffects() as observed:
            program(torch.ones(8, 6))

    said = f"shadow_tests::other returns {unlike} as its fake implementation does"
    for named in (effects, observed.texts):
        assert [one.partition(" (test_shadow.py:")[0] for one in named] == ([said] if unlike else [])


@torch.library.custom_op("shadow_tests::halved", mutates_args=())
def halved(x: torch.Tensor, how: str = "raises") -> torch.Tensor:
    """An operator that accepts float32 only."""
    if how == "raises" and x.dtype != torch.float32:
        raise NotImplementedError
    assert x.dtype == torch.float32
    return x / 2


def updated(schema: str) -> torch.Tensor:
    """An operator that changes its first input, as its schema declares or not."""
    with torch.library._scoped_library("shadow_tests", "FRAGMENT") as library:
        library.define(f"ema{schema}")
        library.impl("ema", lambda seen, x: seen.mul_(0.9).add_(x, alpha=0.1) * 2, "CPU")
        seen = torch.ones(8)
        torch.ops.shadow_tests.ema(seen, torch.arange(8.0))
        return seen * 3


def test_an_operator_whose_arguments_have_keywords_is_followed() -> None:
    with torch.library._scoped_library("shadow_tests", "FRAGMENT") as library:
        library.define("doubled(*, Tensor x) -> Tensor")
        library.impl("doubled", lambda x: x * 2, "CPU")
        x = torch.rand(8, generator=torch.Generator().manual_seed(0))
        expected = reference(lambda: {"y": torch.ops.shadow_tests.doubled(x=x)})["y"]

    assert expected.missing == () and bool(expected.spread.any())


def test_a_write_that_a_schema_does_not_declare_is_named_and_followed() -> None:
    writes: list[str] = []
    declared, hidden = "(Tensor(a!) seen, Tensor x) -> Tensor", "(Tensor seen, Tensor x) -> Tensor"

    right = reference(lambda: {"y": updated(declared)}, undeclared=writes.append)["y"]
    assert (writes, right.missing) == ([], ())

    wrong = reference(lambda: {"y": updated(hidden)}, undeclared=writes.append)["y"]
    (write,) = writes
    assert write.startswith("shadow_tests::ema writes seen, and its schema does not say so (test_shadow.py:")
    assert wrong.missing == ("shadow_tests::ema",)
    assert wrong.spread.max() < 1e-5


@pytest.mark.parametrize(
    ("schema", "returned", "said"),
    [
        ("(Tensor x) -> Tensor", "x", True),
        ("(Tensor x) -> Tensor", "x[2:]", True),
        ("(Tensor x) -> Tensor", "x.clone()", False),
        ("(Tensor(a) x) -> Tensor(a)", "x", False),
    ],
)
def test_an_input_that_an_operator_returns_as_if_it_were_new_is_named(
    schema: str, returned: str, said: bool
) -> None:
    def program() -> dict[str, torch.Tensor]:
        return {"y": torch.ops.shadow_tests.same(torch.ones(8).sin()) * 2}

    effects: list[str] = []
    with torch.library._scoped_library("shadow_tests", "FRAGMENT") as library:
        library.define(f"same{schema}")
        library.impl("same", eval(f"lambda x: {returned}"), "CPU")
        reference(program, undeclared=effects.append)

    assert [one.partition(" (test_shadow.py:")[0] for one in effects] == (
        ["shadow_tests::same returns the memory of x, and its schema says that it is new"] if said else []
    )


def test_a_result_names_the_operator_without_float64_that_it_depends_on() -> None:
    x = torch.randn(8)

    assert expected(lambda: halved(x) + 1).missing == ("shadow_tests::halved",)
    assert expected(lambda: halved(x, "asserts") + 1).missing == ("shadow_tests::halved",)
    assert expected(lambda: x + 1).missing == ()


def _loop_of(x: torch.Tensor, far: float) -> torch.Tensor:
    more = (x.sin().square() + x.cos().square() - 1).sum() + far
    return while_loop(lambda i, x: i < more, lambda i, x: (i + 1, x * 1.1), (torch.zeros(()), x))[1]


def _branch_of(x: torch.Tensor, far: float) -> torch.Tensor:
    one = (x.sin().square() + x.cos().square() - 1).sum() + far > 0
    return torch.cond(one, lambda x: x * 1.1, lambda x: x * 1.2, (x,))


def _python_branch_of(x: torch.Tensor, far: float) -> torch.Tensor:
    one = (x.sin().square() + x.cos().square() - 1).sum() + far > 0
    return x * 1.1 if one else x * 1.2


@pytest.mark.parametrize(
    ("program", "name"), [(_branch_of, "cond"), (_loop_of, "while_loop"), (_python_branch_of, "a branch")]
)
def test_what_depends_on_a_branch_that_rounding_decides_has_no_reference(program: Any, name: str) -> None:
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))

    known = reference(lambda: {"far": program(x, 0.5) * 3, "near": program(x, 0.0) * 3})

    assert known["near"].missing == (f"{name}, which rounding decides",)
    assert known["far"].missing == ()


def test_a_branch_that_random_numbers_decide_is_drawn() -> None:
    def program() -> torch.Tensor:
        torch.manual_seed(0)
        return torch.cond(torch.rand(()) > 0.5, lambda x: x * 1.1, lambda x: x * 1.2, (torch.ones(8),))

    assert expected(program).drawn


def test_quantization_is_followed_though_its_operators_refuse_float64() -> None:
    x, scales, zeros = torch.randn(16, 8), torch.rand(8) / 50, torch.zeros(8, dtype=torch.int64)
    operators = torch.ops.quantized_decomposed

    def program() -> torch.Tensor:
        given = (scales, zeros, 1, -128, 127, torch.int8)
        return operators.dequantize_per_channel(operators.quantize_per_channel(x.tanh(), *given), *given)

    reference = expected(program)

    assert reference.missing == ()
    assert reference.exact.dtype == torch.float64
    torch.testing.assert_close(reference.exact, program().double(), atol=0.02, rtol=0)


def test_a_result_names_the_higher_order_operator_that_it_depends_on() -> None:
    x = torch.ones(4, 4, dtype=torch.int8)
    mm = torch.ops.aten.mm.default

    assert expected(lambda: out_dtype(mm, torch.int32, x, x) * 2).missing == ("out_dtype",)


def test_flex_attention_is_followed() -> None:
    def score(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return score * 1.5 + (i - j)

    q = torch.randn(1, 2, 16, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    one = expected(lambda: flex_attention(q, q, q, score_mod=score))

    assert one.missing == ()
    assert one.own is not None and 0 < (one.exact - one.own.double()).abs().max() < 0.1
    assert one.spread.max() > 0


def test_spread_bounds_the_effect_of_rounding() -> None:
    x = torch.tensor([1.25, 1e8])

    spread = expected(lambda: (x + 1.0) - x).spread

    assert spread[0] < 1e-6
    assert spread[1] > 1


def test_a_sparse_gradient_leaves_dense_results_their_reference() -> None:
    weight, x = torch.randn(5, 3), torch.randn(4, 3)

    def program() -> dict[str, torch.Tensor]:
        table = weight.clone().requires_grad_()
        rows = functional.embedding(torch.tensor([0, 3, 3, 1]), table, sparse=True)
        product = (rows * x).sin()
        product.sum().backward()
        assert table.grad is not None and table.grad.is_sparse
        return {"product": product.detach(), "updated": table.detach().add(table.grad, alpha=-0.1)}

    results = reference(program)

    assert results["product"].missing == () and results["updated"].missing == ("aten.add.Tensor",)
    assert float(results["product"].spread.max()) > 0


@pytest.mark.parametrize("norm", [functional.batch_norm, functional.instance_norm])
def test_running_statistics_are_followed(norm: Any) -> None:
    x = torch.randn(8, 4, 10) + 1

    def program() -> dict[str, torch.Tensor]:
        mean, variance = torch.zeros(4), torch.ones(4)
        norm(x, mean, variance, **({"training": True} if norm is functional.batch_norm else {}))
        return {"mean": mean, "variance": variance}

    for name, one in reference(program).items():
        assert one.own is not None and not one.missing
        torch.testing.assert_close(one.own.double(), one.exact)
        assert float(one.spread.max()) < 1e-6, name


@pytest.mark.parametrize(
    "read",
    [
        lambda x, labels: functional.hinge_embedding_loss(x, labels * 2 - 1),
        lambda x, labels: torch.where(labels == 1, x, -x),
        lambda x, labels: x[labels.long()],
        lambda x, labels: torch.where(x >= 0.5, x, -x),
    ],
)
def test_rounding_does_not_change_labels_and_thresholds(read: Any) -> None:
    x, labels = torch.tensor([0.5, 1.3, 0.2, 2.5]), torch.tensor([1.0, 0.0, 1.0, 0.0])

    assert float(expected(lambda: read(x, labels)).spread.max()) < 1e-6


def test_moving_data_adds_no_spread() -> None:
    x = torch.randn(32, dtype=torch.bfloat16)

    def moved() -> torch.Tensor:
        y = torch.ones_like(x)
        for _ in range(50):
            y = y.clone().flip(0).roll(1)
        return y

    assert expected(moved).spread.max() == 0


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *product(["index_add", "scatter_add", "index_put_", "embedding"], [torch.float32, torch.bfloat16]),
        *product(["index_add", "scatter_add", "index_put_"], [torch.complex64]),
    ],
)
def test_spread_bounds_the_effect_of_adding_one_after_another(name: str, dtype: torch.dtype) -> None:
    index = torch.arange(6000) % 3
    terms = torch.full((6000, 1), 1.01, dtype=dtype)

    def program() -> dict[str, torch.Tensor]:
        zeros = torch.zeros(3, 1, dtype=dtype)
        if name == "embedding":
            weight = zeros.requires_grad_()
            functional.embedding(index, weight).backward(terms)
            return {"sum": weight.grad}
        if name == "index_add":
            return {"sum": zeros.index_add(0, index, terms)}
        if name == "scatter_add":
            return {"sum": zeros.scatter_add(0, index[:, None], terms)}
        return {"sum": zeros.index_put_((index,), terms, accumulate=True)}

    expected = reference(program)["sum"]
    wide = torch.float32 if dtype == torch.bfloat16 else dtype
    in_turn = torch.zeros(3, 1, dtype=wide).index_add(0, index, terms.to(wide))

    assert expected.exact.dtype.itemsize == (16 if dtype == torch.complex64 else 8)
    assert float((in_turn - expected.exact).abs().max()) <= 4 * float(expected.spread.min())
    assert float(expected.spread.max()) <= 1e-3 * float(expected.exact.abs().min())


@pytest.mark.parametrize("cumulative", [torch.cumsum, torch.cumprod])
def test_a_cumulative_result_needs_no_square_of_its_length(cumulative: Any) -> None:
    x = 1 + torch.rand(1 << 17) / (1 << 17)  # its square is 128 GiB

    expected = reference(lambda: {"result": cumulative(x, 0)}, samples=1)["result"]

    assert torch.equal(expected.exact, cumulative(x.double(), 0))
    assert expected.spread.max() > 0 and not expected.missing


@pytest.mark.parametrize(
    "sorting", [lambda x: x.sort(1)[1], lambda x: x.argsort(1), lambda x: x.topk(6, 1)[1]]
)
def test_equal_values_have_no_order_in_an_unstable_sort(
    sorting: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.tensor([[1.0, 2.0, 1.0, 1.0, 9.0, 5.0, 4.0, 3.0]] * 8)
    moved = torch.tensor([3, 1, 2, 0, 4, 5, 6, 7])  # equal values change positions
    exact = reference(lambda: {"i": sorting(x)})["i"]

    own = sorting(x)
    other, wrong = moved[sorting(x[:, moved])], own.clone()
    wrong[2, [4, 5]] = own[2, [5, 4]]

    assert judge(other, own, exact).verdict == "within rounding"
    assert judge(wrong, own, exact).verdict == "compiled is off"


def test_a_stable_sort_has_one_order() -> None:
    x = torch.zeros(4, 8)
    own = torch.sort(x, dim=1, stable=True)[1]
    exact = reference(lambda: {"i": torch.sort(x, dim=1, stable=True)[1]})["i"]

    assert judge(own.flip(1), own, exact).verdict == "compiled is off"


@pytest.mark.parametrize(
    "equal",
    [
        lambda x: x.exp().log() == x,
        lambda x: x.exp().log() != x,
        lambda x: (x.exp().log() - x).bool(),
        lambda x: torch.logical_not(x.exp().log() - x),
        lambda x: (x.exp().log() - x == 0).sum(1),
        lambda x: torch.where((x * 3) / 3 == x, x, 0.0),
    ],
)  # fmt: skip
def test_rounding_decides_which_computed_numbers_are_equal(
    equal: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.rand(16, 32, generator=torch.Generator().manual_seed(0))
    own, other = equal(x), equal(x.double()).to(equal(x).dtype)  # other roundings
    exact = reference(lambda: {"equal": equal(x)}, samples=32)["equal"]

    assert judge(own, other, exact).verdict != "compiled is off"


def test_rounding_does_not_decide_which_exact_numbers_are_equal() -> None:
    labels = torch.tensor([1.0, 2.0, 3.0, 4.0] * 8).reshape(8, 4)
    own = labels.round() == 3.0
    exact = reference(lambda: {"equal": labels.round() == 3.0})["equal"]

    assert judge(~own, own, exact).verdict == "compiled is off"
    assert judge(labels.round() == 2.0, own, exact).verdict == "compiled is off"


def test_rounding_decides_in_float64_as_well_whether_there_is_a_number() -> None:
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))

    def angle(x: torch.Tensor) -> torch.Tensor:
        u = x / x.norm(dim=-1, keepdim=True)
        return torch.acos((u * u).sum(-1))  # 0, or NaN: of 1 plus a rounding

    exact = reference(lambda: {"angle": angle(x)}, samples=32)["angle"]
    zero, nan = torch.zeros(256), torch.full((256,), torch.nan)

    assert bool(exact.exact.isnan().any()) and not bool(exact.exact.isnan().all())
    assert (
        judge(torch.where(exact.exact.isnan(), zero, angle(x)), angle(x), exact).verdict != "compiled is off"
    )
    assert judge(zero, torch.where(exact.exact.isnan(), nan, zero), exact).verdict != "compiled is off"


def test_an_operator_whose_result_has_another_size_in_float64_has_no_reference() -> None:
    x = torch.rand(512, generator=torch.Generator().manual_seed(0)).half()

    def program() -> dict[str, torch.Tensor]:
        return {"y": x * 2, "n": x.exp().log().unique()}

    exact = reference(program)

    assert not exact["y"].missing
    assert exact["n"].missing


def test_what_uninitialised_memory_holds_changes_no_other_number() -> None:
    after = []
    for held in (torch.zeros(8), torch.full((8,), 0.3)):
        noise = Noise(1)
        ShadowStorages(noise).view(held)
        after.append(noise.uniform(torch.empty(3)))

    assert torch.equal(*after)
