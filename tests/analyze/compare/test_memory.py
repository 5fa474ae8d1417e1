"""The last writer of each byte: slices, views, partial writes and reallocated memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.compare.timeline.memory import MemoryWrites, Write, WrittenBits, may_fill
from tracing.model import TensorMeta


def region(count: int) -> TensorMeta:
    return TensorMeta((count,), (1,), "uint8", "cpu")


def write(name: str, start: int, stop: int, *, whole: bool = True, changed: bool = True) -> Write:
    meta = region(stop - start)
    return Write(
        "launch",
        0,
        0,
        name,
        "out_ptr",
        start,
        meta,
        WrittenBits(start, meta, ""),
        whole=whole,
        changed=changed,
    )


def sources(memory: MemoryWrites, start: int, stop: int) -> list[str | None]:
    return [one and one.name for one in memory.sources(start, stop, region(stop - start))]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=20), st.integers(0, 30))
def test_each_byte_has_its_last_writer(writes: list[tuple[int, int]], at: int) -> None:
    memory, expected = MemoryWrites(), dict[int, str]()
    for number, (start, length) in enumerate(writes):
        memory.write(start, start + length, write(str(number), start, start + length))
        expected.update(dict.fromkeys(range(start, start + length), str(number)))

    for byte in range(44):
        assert sources(memory, byte, byte + 1) == [expected.get(byte)]
    assert set(sources(memory, at, at + 10)) == {expected.get(byte) for byte in range(at, at + 10)}


def test_a_slice_does_not_hide_what_wrote_its_neighbour() -> None:
    memory = MemoryWrites()
    memory.write(0, 16, write("all", 0, 16))
    memory.write(4, 8, write("slice", 4, 8))

    assert sources(memory, 0, 16) == ["all", "slice"]
    assert sources(memory, 8, 12) == ["all"]


def test_an_earlier_write_stays_a_candidate_after_a_partial_write() -> None:
    memory = MemoryWrites()
    memory.write(0, 8, write("first", 0, 8))
    memory.write(0, 8, write("partial", 0, 8, whole=False))

    assert sources(memory, 0, 8) == ["partial", "first"]


def test_a_partial_write_into_unwritten_memory_leaves_it_possibly_unwritten() -> None:
    memory = MemoryWrites()
    memory.write(0, 8, write("partial", 0, 8, whole=False))

    assert sources(memory, 0, 8) == ["partial", None]


def test_columns_of_a_matrix_have_their_own_writers() -> None:
    memory, left = MemoryWrites(), TensorMeta((4, 2), (4, 1), "uint8", "cpu")
    for start, name in ((0, "left"), (2, "right")):
        memory.write(
            start, start + 14, Write("launch", 0, 0, name, "", start, left, WrittenBits(start, left, ""))
        )

    assert [one and one.name for one in memory.sources(0, 14, left)] == ["left"]
    assert [one and one.name for one in memory.sources(2, 16, left)] == ["right"]


def test_unwritten_bytes_are_filled_around_written_ones() -> None:
    memory = MemoryWrites()
    memory.write(4, 8, write("slice", 4, 8))
    memory.fill(0, 12, write("seen", 0, 12))

    assert sources(memory, 0, 12) == ["seen", "slice"]


def test_the_order_of_partial_writes_is_kept_up_to_a_limit() -> None:
    memory = MemoryWrites()
    for number in range(100):
        memory.write(0, 8, write(str(number), 0, 8, whole=False))

    assert len(sources(memory, 0, 8)) < 10


def test_slices_that_fill_a_matrix_hide_its_allocation() -> None:
    memory, rows, columns = MemoryWrites(), 300, 768
    whole = TensorMeta((rows, columns), (columns, 1), "float32", "cpu")
    memory.write(0, 4 * rows * columns, write("allocation", 0, 4 * rows * columns)._replace(region=whole))
    for number in range(3):
        part = TensorMeta((rows, 256), (columns, 1), "float32", "cpu")
        start, length = 1024 * number, 4 * ((rows - 1) * columns + 256)
        one = write(f"slice {number}", start, start + length)._replace(region=part, order=number + 1)
        memory.write(start, start + length, one)
        names = {one and one.name for one in memory.sources(0, 4 * rows * columns, whole)}
        assert ("allocation" in names) == (number < 2)

    assert names == {"slice 0", "slice 1", "slice 2"}


def test_only_of_strided_writes_that_overlap_it_is_not_known_what_they_fill() -> None:
    def columns(first: int, last: int) -> Write:
        part = TensorMeta((300, last - first), (768, 1), "float32", "cpu")
        return write("columns", 4 * first, 4 * last)._replace(region=part)

    assert not may_fill((columns(0, 256), columns(256, 512), None))  # the last third is not written
    assert may_fill((columns(0, 300), columns(256, 768)))
    assert not may_fill((write("all", 0, 16),))
