"""Launches of two runs are paired correctly after a difference, and differing ranges of tensors are found."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.align.alignment import AlignedPair, Alignment, fewest_skips
from tracing.analyze.runs.digest_ranges import blame, differing_elements
from tracing.digest.host import digest
from tracing.model import Digest, TensorMeta


@pytest.mark.parametrize(
    ("a", "b", "left_out"),
    [
        ("abcdef", "xabcdef", (0, 1)),
        ("xyabcdef", "abcdef", (2, 0)),
        ("xabcdef", "yabcdef", (1, 1)),
        ("aaab", "aaaab", (0, 1)),
        ("abc", "xyz", (3, 3)),
        ("abc", "", (3, 0)),
    ],
)
def test_the_shortest_alignment_skips_the_fewest_launches(a: str, b: str, left_out: tuple[int, int]) -> None:
    assert fewest_skips(a, b) == left_out


class Launch(NamedTuple):
    number: int
    kernel: str
    value: int = 0  # what it reads and writes
    queue: tuple[int, int] = (0, 0)
    position: str = ""  # in the program

    @property
    def index(self) -> int:  # type: ignore[override]
        return self.number


def launches(kernels: str, values: str = "") -> list[Launch]:
    return [
        Launch(number, kernel, int(values[number : number + 1] or 0)) for number, kernel in enumerate(kernels)
    ]


class Asked:
    """Launches are of one kernel by their letter, and equal by their value."""

    def kernel(self, launch: Launch, side: int) -> str:
        return launch.kernel

    def settings(self, launch: Launch, side: int) -> str:
        return self.exact(launch, side)

    def exact(self, launch: Launch, side: int) -> str:
        return launch.kernel

    def content(self, launch: Launch) -> int:
        return launch.value

    def permuted(self, a: Launch, b: Launch) -> bool:
        return a.value != b.value

    def equal(self, a: Launch, b: Launch) -> bool:
        return a.value == b.value

    def same_inputs(self, a: Launch, b: Launch) -> bool:
        return a.value == b.value

    def same_operands(self, a: Launch, b: Launch) -> bool:
        return a.value == b.value

    def common(self, a: Launch, b: Launch) -> int:
        return 0

    def context(self, a: Launch, b: Launch) -> int:
        return int(a.position == b.position)

    def repeats(self, earlier: Launch, later: Launch, side: int) -> bool:
        return False

    def same_tensors(self, a: Launch, b: Launch) -> bool:
        return False

    def as_often(self, kernel: str) -> bool:
        return True


class Consequences(Asked):
    """Inputs that differ follow from what is reported already; `place` says with which arguments."""

    def exact(self, launch: Launch, side: int) -> str:
        return launch.kernel + launch.position

    def permuted(self, a: Launch, b: Launch) -> bool:
        return False


def aligned(
    a: list[Launch], b: list[Launch], window: int = 64, ask: Asked | None = None
) -> list[AlignedPair[Launch]]:
    return list(Alignment(iter(a), iter(b), ask or Asked(), window=window))


def text(pairs: list[AlignedPair[Launch]]) -> list[str]:
    return [f"{one.number if one else '-'}{other.number if other else '-'}" for one, other, _ in pairs]


@given(st.text("abc", max_size=40), st.text("abc", max_size=40), st.integers(8, 16))
def test_every_launch_of_both_runs_comes_out_once(a: str, b: str, window: int) -> None:
    pairs = aligned(launches(a), launches(b), window)

    assert sorted(one.number for one, _, _ in pairs if one) == list(range(len(a)))
    assert sorted(other.number for _, other, _ in pairs if other) == list(range(len(b)))
    in_step = [(one, other) for one, other, moved in pairs if one and other and not moved]
    assert in_step == sorted(in_step)


@given(st.permutations("abcdefghijklmnopqrst"), st.integers(0, 19))
def test_one_launch_left_out_costs_one_launch(names: list[str], where: int) -> None:
    a, b = "".join(names), "".join(names[:where] + names[where + 1 :])
    pairs = aligned(launches(a), launches(b))

    assert [one.kernel for one, other, _ in pairs if one and not other] == [a[where]]
    assert all(one for one, _, _ in pairs)


@given(st.permutations("abcdef"))
def test_reordered_launches_are_partners(names: list[str]) -> None:
    pairs = aligned(launches("xyabcdefzw"), launches("xy" + "".join(names) + "zw"))

    assert all(one and other and one.kernel == other.kernel for one, other, _ in pairs)


def test_a_launch_that_comes_much_later_in_the_other_run_waits_for_it() -> None:
    between = "abcdefghijkl"
    pairs = aligned(launches(f"x{between}"), launches(f"{between}x"))

    assert [(one.kernel, other.kernel) for one, other, moved in pairs if moved] == [("x", "x")]
    assert len(pairs) == 13


def test_launches_of_one_kernel_on_exchanged_inputs_are_known_by_their_bits() -> None:
    assert text(aligned(launches("kkzk", "1263"), launches("kkzk", "2163"))) == ["01", "10", "22", "33"]


def test_a_launch_inserted_among_others_of_its_kernel_is_known_by_its_bits() -> None:
    assert text(aligned(launches("kkk", "123"), launches("kkkk", "9123"))) == ["-0", "01", "12", "23"]


def test_a_launch_that_differs_among_others_of_its_kernel_keeps_its_position() -> None:
    assert text(aligned(launches("kkkkk", "11111"), launches("kkkkk", "11911"))) == [
        "00",
        "11",
        "22",
        "33",
        "44",
    ]


def places(launches: list[Launch], names: str) -> list[Launch]:
    return [one._replace(position=name) for one, name in zip(launches, names, strict=True)]


def test_launches_with_as_much_in_common_are_known_by_where_they_stand_in_the_program() -> None:
    a, b = places(launches("kkz", "123"), "xyz"), places(launches("kz", "93"), "yz")

    assert text(aligned(a, b)) == ["0-", "10", "21"]


def test_launches_with_as_much_in_common_stay_in_order() -> None:
    a, b = places(launches("kkz", "123"), "xyz"), places(launches("kkz", "893"), "yxz")

    assert text(aligned(a, b)) == ["00", "11", "22"]


class Following(Asked):
    """Differences of launches follow from others; a launch is like those at the same position."""

    def permuted(self, a: Launch, b: Launch) -> bool:
        return False

    def exact(self, launch: Launch, side: int) -> str:
        return launch.kernel + launch.position


def test_a_launch_that_waits_is_paired_before_a_later_one_of_its_kernel() -> None:
    a, b = launches("bkk", "123"), launches("kbk", "213")

    assert sorted(text(list(Alignment(iter(a), iter(b), Following())))) == ["01", "10", "22"]


def test_threads_are_paired_by_the_arguments_of_their_first_launch() -> None:
    a = [Launch(0, "k", 1, (0, 1), "x"), Launch(1, "k", 2, (0, 2), "x")]
    b = [
        Launch(0, "k", 9, (0, 1), "y"),
        Launch(1, "k", 7, (0, 2), "x"),
        Launch(2, "k", 8, (0, 3), "x"),
    ]

    assert sorted(text(list(Alignment(iter(a), iter(b), Following())))) == ["-0", "01", "12"]


def test_threads_are_paired_by_their_first_launch() -> None:
    a = [Launch(0, "k", 1, (0, 0)), Launch(1, "k", 2, (0, 1))]
    b = [Launch(0, "k", 2, (0, 0)), Launch(1, "k", 1, (0, 1))]

    assert sorted(text(aligned(a, b))) == ["01", "10"]


def test_a_launch_that_waits_is_the_partner_of_a_later_one_although_a_nearer_one_would_do() -> None:
    pairs = aligned(launches("zkk", "123"), launches("kzk", "213"), ask=Consequences())

    assert sorted(text(pairs)) == ["01", "10", "22"]


def test_threads_are_paired_by_the_arguments_of_their_launches_and_in_order() -> None:
    a = [Launch(n, "k", n, (0, n), "y") for n in (1, 2)]
    b = [Launch(n, "k", 9, (0, n), "xyy"[n - 1]) for n in (1, 2, 3)]

    assert sorted(text(aligned(a, b, ask=Consequences()))) == ["-1", "12", "23"]


def test_of_two_shortest_alignments_the_one_with_the_longer_match_is_chosen() -> None:
    assert fewest_skips("bhbhbhdbce", "hbhbhdbce") == (1, 0)


@pytest.mark.parametrize("changed", [0, 5000, 99_999])
def test_the_range_of_elements_that_differs_holds_the_element_that_was_changed(changed: int) -> None:
    a = torch.zeros(100_000)
    b = a.clone()
    b[changed] = 1

    ranges = differing_elements(TensorMeta((100_000,), (1,), "float32", "cpu"), digest(a), digest(b))

    assert len(ranges) == 1
    assert ranges[0][0] <= changed < ranges[0][1] <= 100_000


ALL = TensorMeta((16384,), (1,), "float32", "cpu")
HALF = 8192  # elements of 4 bytes in 4 of 8 ranges


def pair(a: torch.Tensor, b: torch.Tensor) -> tuple[Digest, Digest]:
    return digest(a), digest(b)


def garbage(seed: int) -> torch.Tensor:
    return torch.rand(2 * HALF, generator=torch.Generator().manual_seed(seed))


def test_memory_that_was_equal_before_and_differs_now_was_written_by_the_launch() -> None:
    before = garbage(0), torch.cat([garbage(0)[:HALF], garbage(1)[HALF:]])
    after = [torch.cat([torch.full((HALF,), float(run)), one[HALF:]]) for run, one in enumerate(before)]

    assert blame(pair(*before), pair(*after)) == "launch"
    assert differing_elements(ALL, *pair(*after), pair(*before)) == [(0, HALF)]


def test_memory_that_differs_as_it_did_before_was_left_untouched() -> None:
    before = garbage(0), garbage(1)
    after = [torch.cat([torch.zeros(HALF), one[HALF:]]) for one in before]

    assert blame(pair(*before), pair(*after)) == "untouched"


def test_a_change_of_memory_that_differed_before_writes_an_unknown_part() -> None:
    before = garbage(0), garbage(1)
    after = [one.clone() for one in before]
    for one in after:
        one[::2] = 0

    assert blame(pair(*before), pair(*after)) == "open"


def test_digests_without_ranges_put_no_blame_on_a_launch() -> None:
    assert blame((Digest("a"), Digest("b")), (Digest("c"), Digest("d"))) == "open"


class TwoInputs(Asked):
    """The digits of a launch's value are its inputs; equal ones are one tensor; `position` is a scalar."""

    def settings(self, launch: Launch, side: int) -> str:
        return launch.kernel + launch.position

    def exact(self, launch: Launch, side: int) -> str:
        one, other = divmod(launch.value, 10)
        return f"{self.settings(launch, side)} {one == other}"

    def permuted(self, a: Launch, b: Launch) -> bool:
        return (a.value, a.position) != (b.value, b.position)

    def common(self, a: Launch, b: Launch) -> int:
        return sum(one == other for one, other in zip(f"{a.value:02}", f"{b.value:02}", strict=True))


def test_two_launches_of_which_no_input_moved_are_not_reordered() -> None:
    a, b = [Launch(0, "k", 12), Launch(1, "k", 34)], [Launch(0, "k", 11), Launch(1, "k", 52)]

    assert text(aligned(a, b, ask=TwoInputs())) == ["00", "11"]


def test_a_launch_all_of_whose_inputs_moved_is_reordered() -> None:
    a, b = [Launch(0, "k", 12), Launch(1, "k", 34)], [Launch(0, "k", 64), Launch(1, "k", 12)]

    assert text(aligned(a, b, ask=TwoInputs())) == ["01", "10"]


def test_launches_whose_scalars_moved_are_reordered_whatever_they_read() -> None:
    a = [Launch(0, "k", 12, position="2.0"), Launch(1, "k", 34, position="3.0")]
    b = [Launch(0, "k", 12, position="3.0"), Launch(1, "k", 56, position="2.0")]

    assert text(aligned(a, b, ask=TwoInputs())) == ["01", "10"]


class Accumulated(TwoInputs):
    """The second digit is that of a tensor to which the launch adds the first one."""

    def same_operands(self, a: Launch, b: Launch) -> bool:
        return a.value // 10 == b.value // 10

    def common(self, a: Launch, b: Launch) -> int:
        return 2 * self.same_operands(a, b) + (a.value % 10 == b.value % 10)


def test_launches_that_add_to_one_tensor_in_another_order_are_reordered() -> None:
    a, b = [Launch(0, "k", 10), Launch(1, "k", 21)], [Launch(0, "k", 20), Launch(1, "k", 12)]

    assert text(aligned(a, b, ask=Accumulated())) == ["01", "10"]


def test_one_launch_that_adds_an_equal_tensor_is_not_reordered() -> None:
    a, b = [Launch(0, "k", 10), Launch(1, "k", 21)], [Launch(0, "k", 30), Launch(1, "k", 12)]

    assert text(aligned(a, b, ask=Accumulated())) == ["00", "11"]


class Updated(Asked):
    """Each launch reads one tensor, whose updates its value counts; `position` names that tensor."""

    def __init__(self, *, as_often: bool = True) -> None:
        self._as_often = as_often

    def repeats(self, earlier: Launch, later: Launch, side: int) -> bool:
        return earlier.position == later.position

    def same_tensors(self, a: Launch, b: Launch) -> bool:
        return a.position == b.position

    def as_often(self, kernel: str) -> bool:
        return self._as_often


@pytest.mark.parametrize(
    ("a", "b"),
    [("1123", "1234"), ("1212", "2121")],
    ids=["an update made earlier", "an update that changes a sign"],
)
def test_launches_that_repeat_each_other_on_one_tensor_stay_in_order(a: str, b: str) -> None:
    pairs = aligned(launches("kkkk", a), launches("kkkk", b), ask=Updated())

    assert text(pairs) == ["00", "11", "22", "33"]


def test_launches_on_a_new_tensor_of_each_step_stay_in_order() -> None:
    a, b = (places(launches("kkkk", values), "wxyz") for values in ("1123", "1234"))

    assert text(aligned(a, b, ask=Updated())) == ["00", "11", "22", "33"]


def test_launches_on_other_tensors_are_reordered_although_one_of_them_differs() -> None:
    a, b = places(launches("kkk", "123"), "xyz"), places(launches("kkk", "239"), "yzx")

    assert sorted(text(aligned(a, b, ask=Updated()))) == ["02", "10", "21"]


@pytest.mark.parametrize("tensors", ["x" * 90, "".join(map(chr, range(200, 290)))], ids=["one", "several"])
def test_a_launch_that_one_run_lacks_has_no_partner_far_after_it(tensors: str) -> None:
    a = [Launch(n, "k", n, position=tensor) for n, tensor in enumerate(tensors)]
    b = [one._replace(number=n) for n, one in enumerate(a[:3] + a[4:])]

    pairs = aligned(a, b, 1024, Updated(as_often=False))

    assert [one for one, other, _ in pairs if other is None] == [a[3]]
    assert all(one == other._replace(number=one.number) for one, other, _ in pairs if one and other)
