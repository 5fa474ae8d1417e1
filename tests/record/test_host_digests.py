"""C++ takes the digests of what operators read and write on the host; they equal those of the Python form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from handmade.records import INFO
from recorded.both_forms import in_both_forms, operators
from recorded.method_calls import calls_of
from recorded.threads import in_threads
from recorded.training_step import training_step

from tracing import store
from tracing.digest import host
from tracing.digest.host import digest
from tracing.model import Digest, NotCovered, OperatorDigests
from tracing.native.extension import extension
from tracing.operators.dispatch import Operators
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_digests import OperatorDigestQueue

STEPS = 30
TILE = 8192
SIZES = [0, 1, 3, 1023, 1025, TILE - 1, TILE, TILE + 1, 8 * TILE, 8 * TILE + 16, 17 * TILE - 5]  # bytes
INTEGERS = [torch.bool, torch.int8, torch.uint16, torch.int32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NARROW = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
NORMS = [
    0.0,
    5e-324,
    9.99999999e-17,
    1e-16,
    0.1,
    1.2345655,
    123456.5,
    999999.5,
    1e6,
    1234565.0,
    3.3e30,
    1e308,
]
READS = ["tracing_host_digests::read", "aten::clone"]

# tensors -> their digests, which both forms have taken, and how many of them C++ has left to Python
InBothForms: TypeAlias = Callable[..., tuple[list[Digest], int]]


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    extension("operator_observer")


@pytest.fixture
def digests_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InBothForms]:
    def taken(tensors: Sequence[torch.Tensor], read: Any = None) -> tuple[list[Digest], int]:
        read, known = read or torch.ops.tracing_host_digests.read, torch.ones(1)

        def program() -> None:
            for tensor in (known, known, *tensors):  # the operator is known from the second call on
                read(tensor)

        learned = calls_of(monkeypatch, OperatorDigestQueue, "learned")
        python, compiled = in_both_forms(tmp_path, monkeypatch, program, operators="digests")
        recorded = list(compiled.records(OperatorDigests))
        assert recorded == list(python.records(OperatorDigests))
        assert operators(compiled) == operators(python)
        assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]
        reads = {call.index for call in operators(compiled) if call.name in READS}
        return [one for line in recorded if line.operator in reads for one in line.before][2:], len(learned)

    with torch.library._scoped_library("tracing_host_digests", "FRAGMENT") as library:
        library.define("read(Tensor x) -> Tensor")  # of any dtype and layout
        library.impl("read", lambda x: torch.ones(1), "CPU")
        yield taken


def random_bits(nbytes: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of all kinds of values: NaN, infinite, denormal ones."""
    generator = torch.Generator().manual_seed(nbytes)
    data = torch.randint(2 if dtype is torch.bool else 256, (nbytes,), generator=generator).byte()
    return data[: nbytes - nbytes % dtype.itemsize].view(dtype)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *NARROW, *COMPLEX], ids=str)
def test_the_digest_of_each_dtype_and_size_is_pythons(dtype: torch.dtype, digests_of: InBothForms) -> None:
    tensors = [random_bits(nbytes, dtype) for nbytes in SIZES]

    digests, left = digests_of(tensors)

    assert [len(one.tiles) // 3 for one in digests[-3:]] == [8, 5, 5]
    assert (digests[-1].nan > 0) == (dtype not in INTEGERS)
    assert left == 0


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_are_counted(dtype: torch.dtype, digests_of: InBothForms) -> None:
    ordinary = torch.arange(-900.0, 900.0).to(dtype)
    special = torch.tensor([math.nan, -math.nan, math.inf, -math.inf, -math.inf, -0.0, 0.0, 1.0], dtype=dtype)
    denormal = torch.full((3,), torch.finfo(dtype).smallest_normal, dtype=dtype) / 2

    (with_special, denormals), _ = digests_of([torch.cat([ordinary, special]), denormal])

    assert (with_special.nan, with_special.inf, with_special.negative_zero) == (2, 3, 1)
    assert with_special.l1 == 1 + ordinary.double().abs().sum().item()
    assert denormals.l1 == pytest.approx(1.5 * torch.finfo(dtype).smallest_normal, rel=1e-5, abs=0)


def test_the_digest_of_each_layout_is_pythons(digests_of: InBothForms) -> None:
    x, wide, data = (
        torch.randn(65, 67, 3),
        torch.randn(90, 91, dtype=torch.float64),
        torch.arange(40000).byte(),
    )
    layouts = [
        *(x.permute(order) for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))),
        *(x[1:, ::2], x[::3, 5:, 1], x[:, :, 0].t(), x[:, 3:4].expand(-1, 9, -1), x[..., None, :, None, :1]),
        *(
            x.half().transpose(0, 1)[1:],
            wide.t(),
            wide.to(torch.complex128).t(),
            torch.ones(()).expand(3, 3000),
        ),
        *(data[1:], data[7:9000], data[::3], data[1:37].view(6, 6).t()),
        *(torch.zeros(0, 3).t(), torch.tensor(2.5), torch.empty_strided((1, 1), (7, 3)).fill_(1)),
    ]

    digests, left = digests_of(layouts)

    assert digests == [digest(one.contiguous()) for one in layouts]
    assert left == 0


def test_norms_are_rounded_to_the_same_bits(digests_of: InBothForms) -> None:
    generator, largest = torch.Generator().manual_seed(1), torch.finfo(torch.float64).max
    random = 10 ** torch.empty(200, dtype=torch.float64).uniform_(-25, 308, generator=generator)
    norms = [*NORMS, largest, *random.tolist(), *(10.0**exponent for exponent in range(-18, 26))]
    infinite = torch.full((2,), largest, dtype=torch.float64)

    digests, _ = digests_of([*torch.tensor(norms, dtype=torch.float64), infinite])

    assert [one.l1 for one in digests[:-1]] == pytest.approx(norms, rel=5.1e-6, abs=0)
    assert digests[len(NORMS)].l1 == digests[-1].l1 == 1.79769e308


@pytest.mark.parametrize(("norm", "digits"), [(1234565.0, 1234560.0), (0.1234567, 0.123457), (7e-17, 7e-17)])
def test_a_norm_has_six_digits(norm: float, digits: float) -> None:
    assert host.rounded(torch.tensor([norm], dtype=torch.float64).numpy()).tolist() == [digits]


def test_python_takes_the_digests_of_tensors_that_need_it(digests_of: InBothForms) -> None:
    freed, cut = torch.ones(8), torch.ones(8)
    freed.untyped_storage().resize_(0)
    cut.untyped_storage().resize_(8)
    packed = torch.ones(8).byte().view(torch.float4_e2m1fn_x2)

    digests, left = digests_of([freed, cut, packed])

    assert [one.bits != "" for one in digests] == [False, False, True]
    assert left == 3


def test_python_takes_the_digests_of_lazy_conjugates_and_negatives(digests_of: InBothForms) -> None:
    x = torch.randn(3, dtype=torch.complex64).conj()

    digests, left = digests_of([x, x.imag], torch.clone)

    assert digests == [digest(x.resolve_conj()), digest(x.imag.resolve_neg())]
    assert left == 2  # their clones are plain


def test_a_training_step_rarely_reaches_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = training_step()
    dispatched = calls_of(monkeypatch, Operators, "__torch_dispatch__")
    taken = calls_of(monkeypatch, OperatorDigestQueue, "take")
    by_python = calls_of(monkeypatch, host, "bits")
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        for _ in range(STEPS):
            step()
    recorded = list(store.Run(recorder.writer.path).records(OperatorDigests))

    assert len(recorded) > 40 * STEPS
    assert len(taken) <= 2 * len(dispatched) < len(recorded) / 5
    assert not by_python


def test_threads_take_the_digests_of_large_tensors_in_their_order(tmp_path: Path) -> None:
    def work() -> None:
        x = torch.rand(1 << 16)
        for _ in range(20):
            x = x * 2 + 1

    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        in_threads(work)
    run = store.Run(recorder.writer.path)
    taken = {line.operator: line for line in run.records(OperatorDigests)}

    for thread_number in {call.thread for call in operators(run)}:
        mine = [
            call.index
            for call in operators(run)
            if call.thread == thread_number and call.name != "aten::rand"
        ]
        assert len(mine) == 2 * 20
        for a, b in pairwise(mine):
            assert taken[a].after == taken[b].before  # each operator reads what the one before it wrote
