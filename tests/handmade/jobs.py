"""Runs of jobs with several ranks, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from handmade.records import META
from handmade.runs import HOST, add, word

from tracing import store
from tracing.model import SCHEMA, Digest, KernelLaunch, Landmark, LandmarkDigests, Outcome, Record, RunInfo

INFO = RunInfo(SCHEMA, "case", "/case.py", (), 0, "2026-11-21T08:00:00Z", HOST)
ALL_REDUCE, REDUCE_SCATTER = "c10d::allreduce_", "c10d::_reduce_scatter_base_"


def job(
    runs: Path,
    *ranks: Sequence[KernelLaunch],
    landmarks: Sequence[Sequence[tuple[int, str, str]]] = (),
    group: tuple[int, ...] | None = None,
    world_size: int | None = None,
    records: Sequence[Sequence[Record]] = (),
    **parameter: object,
) -> store.Run:
    """A run of several ranks; a landmark is (launches before it, its name, the word of its digest).

    records   -- further records of each rank: accesses, operators, ...
    parameter -- fields of `Landmark` of each update: its storage, name, gradient, ...
    """
    members = tuple(range(len(ranks)))
    info = msgspec.structs.replace(INFO, world_size=world_size or len(ranks))
    for rank, launches in enumerate(ranks):
        writer = store.create(runs, info, rank, "job")
        add(writer, launches)
        for record in records[rank] if records else ():
            writer.append(record)
        for index, (before, name, left) in enumerate(landmarks[rank] if landmarks else ()):
            kind = "collective" if "::" in name else "update"
            landmark = Landmark(index, before, kind, name, group or members, (), (META,))
            writer.append(msgspec.structs.replace(landmark, **parameter if kind == "update" else {}))
            writer.append(LandmarkDigests(index, "results", (word(Digest(left)),)))
        writer.append(Outcome("passed", ""))
        writer.close()
    return store.Run(writer.path)
