"""The stages of torch.compile at which a graph can be executed by ATen, and the parts that each stage adds.

Before them comes the program without any compiler, executing the code that it has for compilation only.

If the graph of one stage gives right results and that of the next one wrong ones, a part of the next one is
to blame. The last part is searched first: leaving out a part also hides faults of the later parts that work
on its output, but not of earlier parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNCOMPILED = "uncompiled"  # what the program itself computes for compilation, without any compiler
EAGER, AOT, DECOMPOSED = "eager", "aot_eager", "aot_eager_decomp_partition"
JOINED, POST_GRAD_GRAPH, INDUCTOR = "joint graph", "post-grad graph", "inductor"

EAGER_PROGRAM = "eager program"  # a program in which nothing compiles; not a stage of the ladder
OBSERVED_PROGRAM = "observed program"  # the same, with a look at what its operators do; not a stage either
CPP = "inductor, C++"  # INDUCTOR with its other code generator; not a stage of the ladder

GRAPHS, SETTINGS, DECOMPOSITIONS, PATTERNS = "graphs", "settings", "decompositions", "patterns"
PRE_GRAD, JOINT, POST_GRAD = "pre-grad passes", "joint-graph passes", "post-grad passes"
REINPLACING, REUSE, IN_PLACE = "reinplacing", "reuse of buffers", "in-place updates"
LOOP_ORDER, MERGED_LOOPS, FUSION = "loop reordering", "merged loops", "fusion"
INLINING, LOWERINGS = "inlining", "lowerings"
BACKENDS = "backends of the program"
NO_ATEN = "operators that ATen lacks"  # such as kernels of the user: no build leaves them out


@dataclass(frozen=True, slots=True)
class CompileStage:
    """One stage between eager and Inductor."""

    name: str  # the argument for the child process that compiles
    executes: str  # text: what is executed
    blamed: str  # text: the culprit if this is the first stage that is wrong
    parts: Sequence[str]  # in the order of the search


STAGES: Sequence[CompileStage] = (
    CompileStage(
        UNCOMPILED, "the program itself, with torch.compiler.is_compiling() true",
        "the program: where torch.compiler.is_compiling() is true, it differs from eager, or fails", (),
    ),
    CompileStage(EAGER, "Dynamo's graphs, by ATen", "Dynamo", (BACKENDS, SETTINGS)),
    CompileStage(
        AOT, "AOTAutograd's graphs, by ATen",
        "AOTAutograd (functionalization, aliases, the partition into forward and backward)", (SETTINGS,),
    ),
    CompileStage(
        DECOMPOSED, "the same with Inductor's decompositions, by ATen",
        "a decomposition, or the partition that Inductor asks for", (DECOMPOSITIONS, SETTINGS),
    ),
    CompileStage(
        JOINED, "the same after the pre-grad and joint-graph passes, by ATen",
        "a pass of Inductor before or on the joint graph, or the partition into forward and backward",
        (JOINT, PRE_GRAD, PATTERNS, DECOMPOSITIONS, SETTINGS),
    ),
    CompileStage(
        POST_GRAD_GRAPH, "the same after the post-grad passes, by ATen",
        "a post-grad pass of Inductor", (POST_GRAD, PATTERNS, SETTINGS),
    ),
    CompileStage(
        INDUCTOR, "Inductor's kernels",
        "Inductor after its graph passes: lowering, scheduling or code generation",
        (REUSE, IN_PLACE, SETTINGS, LOOP_ORDER, MERGED_LOOPS, FUSION, INLINING, LOWERINGS),
    ),
)  # fmt: skip

# What a step of these parts consists of, and can be searched next.
INSIDE: Mapping[str, Sequence[str]] = {
    JOINT: (PATTERNS,),
    PRE_GRAD: (PATTERNS,),
    POST_GRAD: (REINPLACING, PATTERNS),
    SETTINGS: (FUSION, LOWERINGS),
}

# What a build without all steps of a part is, for people.
WITHOUT: Mapping[str, str] = {
    GRAPHS: "with every graph executed by ATen",
    SETTINGS: "with every setting at its least",
    BACKENDS: "with Inductor as the backend",
    DECOMPOSITIONS: "without Inductor's decompositions",
    PATTERNS: "with no pattern replaced",
    PRE_GRAD: "without pre-grad passes",
    JOINT: "without joint-graph passes",
    POST_GRAD: "without post-grad passes",
    REINPLACING: "with no operator reinplaced",
    REUSE: "with no buffer reused",
    IN_PLACE: "with no output in the memory of an input",
    LOOP_ORDER: "with no loops reordered for a fusion",
    MERGED_LOOPS: "with no loops merged",
    FUSION: "with nothing fused",
    INLINING: "with every node in memory of its own",
    LOWERINGS: "with ATen for every operator",
}


def stage(name: str) -> CompileStage:
    """The stage with a name; raises StopIteration if there is none."""
    return next(one for one in STAGES if one.name == name)
