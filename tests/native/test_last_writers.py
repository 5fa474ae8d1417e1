"""The compiled LastWriters keeps the writes that its Python form keeps, after each operator and launch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.model import TensorMeta
from tracing.native.extension import extension_of
from tracing.record.memory.last_writers import LastWriters

Tensor: TypeAlias = tuple[int, TensorMeta]  # number of its storage, layout


def meta(shape: Sequence[int], stride: Sequence[int], offset: int = 0, dtype: str = "float32") -> TensorMeta:
    return TensorMeta(tuple(shape), tuple(stride), dtype, "cpu", offset)


PARTS = [meta((1,), (1,), offset) for offset in range(64)]
LAYOUTS = [
    meta((8, 8), (8, 1)),
    meta((8, 8), (8, 1)),  # equal, and another object
    meta((8, 8), (1, 8)),
    meta((4, 8), (8, 1), 32),
    meta((8, 2), (8, 1), 3),  # columns
    meta((32,), (2,)),
    meta((32,), (2,), 1),
    meta((2, 3), (0, 1)),  # expanded
    meta((0,), (1,), 8),
    meta((16,), (1,), 8, "bfloat16"),
    meta((1 << 9, 1 << 9), (1 << 10, 1)),  # too large for its bytes to be enumerated
    *PARTS[:4],
]

storages = st.integers(0, 1)
tensors = st.tuples(storages, st.sampled_from(LAYOUTS))
events = st.one_of(
    st.tuples(st.just("operator"), st.sampled_from(["a", "b"]), tensors),
    st.tuples(st.just("allocator"), storages),
    st.tuples(st.just("launch"), st.lists(tensors, max_size=3), st.lists(tensors, max_size=3)),
)


@pytest.fixture(scope="module")
def module() -> ModuleType:
    return extension_of(Path(__file__).with_name("last_writers_records.cpp"))


class BothForms:
    """The writes of one program, in both forms."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.python, self.changed = module, LastWriters(), LastWriters()
        self.compiled = module.compile(self.changed)
        self.written: dict[tuple[str, int], tuple[tuple[TensorMeta, str]]] = {}

    def operator(self, name: str, tensor: Tensor) -> None:
        storage, layout = tensor
        # a signature of the recorder keeps its writes
        alone = self.written.setdefault((name, id(layout)), ((layout, name),))
        self.python.wrote(name, [layout], [storage])
        self.module.wrote(self.compiled, storage, alone)

    def allocator(self, storage: int) -> None:
        self.python.allocated([storage])
        self.module.allocated(self.compiled, storage)

    def launch(self, reads: Sequence[Tensor], writes: Sequence[Tensor]) -> None:
        arguments = [*reads, *writes]
        template: Any = SimpleNamespace(
            reads=range(len(reads)),
            writes=range(len(reads), len(arguments)),
            positions=range(len(arguments)),
            metas=[layout for _, layout in arguments],
        )
        slots: Any = SimpleNamespace(template=template, storages=[storage for storage, _ in arguments])
        compiled = [(i, *argument) for i, argument in enumerate(arguments)]
        assert self.module.of(
            self.compiled, compiled[: len(reads)], compiled[len(reads) :]
        ) == self.python.of(slots)

    def compare(self) -> None:
        assert self.changed.writes == self.python.writes


@given(program=st.lists(events, max_size=40))
def test_both_forms_keep_the_same_writes(program: list[tuple[Any, ...]], module: ModuleType) -> None:
    both = BothForms(module)
    for kind, *facts in program:
        getattr(both, kind)(*facts)
        both.compare()


def test_both_forms_forget_the_same_writes_of_many(module: ModuleType) -> None:
    both, choose = BothForms(module), random.Random(1)
    longest = 0
    for _ in range(400):
        both.operator(choose.choice("abc"), (0, choose.choice(PARTS)))
        if choose.random() < 0.1:
            both.launch([(0, choose.choice(LAYOUTS))], [(0, choose.choice(PARTS))])
        both.compare()
        longest = max(longest, len(both.python.writes[0]))

    assert longest == 33  # the last one, and 32 before it
