"""Which backends of a program change the graphs of Dynamo before Inductor receives them?"""

from __future__ import annotations

from tracing.model import FrameCompile, TracedGraph
from tracing.store import Run


def changed_by_backends(run: Run) -> list[str]:
    """What no graph of a run shows to be right, a sentence for each such backend.

    Inductor's graphs are recorded as they are handed to it, so a backend that calls `compile_fx` comes before
    all that is compared with them. The backend "inductor" receives Dynamo's graphs themselves.

    Cost: one comparison of text for each frame that a backend of the program compiled.
    """
    received: dict[str, list[str]] = {}
    for graph in run.records(TracedGraph):
        received.setdefault(graph.compile_id, []).append(graph.text)
    changed: dict[str, list[str]] = {}
    for frame in run.records(FrameCompile):
        texts = received.get(frame.compile_id, [])
        if frame.backend not in ("", "inductor") and frame.graph and texts and texts != [frame.graph]:
            changed.setdefault(frame.backend, []).append(frame.compile_id)
    return [
        f"what the backend {name} changes in Dynamo's graphs, before Inductor ({', '.join(compiles)})"
        for name, compiles in changed.items()
    ]
