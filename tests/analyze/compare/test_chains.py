"""Chains of operators are bounded, and the last operators of a chain keep their inputs."""

from __future__ import annotations

from itertools import count

from handmade.records import META

from tracing.analyze.compare.timeline.chains import DEEP, Chains
from tracing.analyze.compare.timeline.memory import Input, Write, WrittenBits


def depths(write: Write) -> list[int]:
    """The operators that a chain has, and whether its first one lacks its inputs."""
    length = 1
    while write.reads:
        (source,) = write.reads[0].sources
        assert source is not None
        write, length = source, length + 1
    return [length, int(write.cut)]


def test_the_last_operators_of_a_long_chain_have_their_inputs() -> None:
    chains = Chains()
    last = Write("launch", 0, 0, "k", "out", 0, META, WrittenBits(0, META, ""))
    lengths = []
    for number in range(1, 10 * DEEP):
        reads = (Input(0, chains.followed((last,))),)
        depth = 1 + max(one.depth for one in reads[0].sources if one)
        last = Write("operator", number, 0, "aten::add", "", 0, META, last.left, reads=reads, depth=depth)
        lengths.append(depths(last))

    for number, (length, cut) in zip(count(1), lengths):
        assert length <= 2 * DEEP + 1
        assert (length, cut) == (number + 1, 0) or (length > DEEP and cut)


def test_results_of_one_operator_share_their_shortened_inputs() -> None:
    chains = Chains()
    left = WrittenBits(0, META, "")
    last = Write("launch", 0, 0, "k", "out", 0, META, left)
    for number in range(2 * DEEP):
        reads = (Input(0, (last,)),)
        last = Write("operator", number, 0, "aten::add", "", 0, META, left, reads=reads, depth=number + 1)
    one, other = chains.followed((last, last._replace(position=1)))

    assert one is not None and other is not None and one.reads is other.reads
    assert chains.followed((last,))[0] is one
