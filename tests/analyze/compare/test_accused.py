"""What a divergence accuses: its kind, name and runs, and whether the accusation is certain."""

from __future__ import annotations

import pytest
from handmade.records import arg, launch

from tracing.analyze.compare.accused import Accused, accused
from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OrderDiffers,
    OutputDiffers,
    ReadOutside,
)
from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.compare.signature_pair import SettingChange

A, B = (
    launch(index, arg("in_ptr", "in", "x"), arg("out_ptr", "out", "old", "y"), name="reader")
    for index in (4, 5)
)
PAIR = LaunchPair(0, A, B)
OTHER = LaunchPair(0, A, launch(5, *B.args, name="other"))
WRITER = Writer(1, 2, "writer", "out_ptr")
BLOCK = (SettingChange("BLOCK", "16", "64"),)
CODE = CodeDifference("source", ("-x", "+y"))


def reader(kind: str, argument: str | None = "in_ptr", **more: object) -> Accused:
    return Accused(kind, "reader", argument, 4, 5, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("divergence", "who"),
    [
        (LaunchDiffers(PAIR, BLOCK, None, False, ()), reader("configuration", None)),
        (LaunchDiffers(PAIR, BLOCK, None, True, ()), reader("winner", None)),
        (LaunchDiffers(PAIR, BLOCK, CODE, False, ()), reader("code", None)),
        (
            LaunchDiffers(OTHER, (SettingChange("kernel", "reader", "other"),), None, False, ()),
            reader("code", None),
        ),
        (OutputDiffers(PAIR, 1), reader("kernel", "out_ptr")),
        (OutputDiffers(PAIR, 1, ReadOutside("in_ptr")), reader("out of bounds", "in_ptr")),
        (OutputDiffers(PAIR, 1, "unwritten"), reader("unknown", "out_ptr", certain=False)),
        (OutputDiffers(PAIR, 1, "untouched"), reader("unknown", "out_ptr", certain=False)),
        (OutputDiffers(PAIR, 1, "addresses"), reader("unknown", "out_ptr", certain=False)),
        (OrderDiffers(PAIR, LaunchPair(0, B, A), "in_ptr", "out_ptr"), reader("order")),
        (OneSided(LaunchPair(0, A, None), 1, False, True), Accused("missing", "reader", None, 4, None, "a")),
        (OneSided(LaunchPair(0, None, B), 1, True, True), Accused("missing", "reader", None, None, 5, "b")),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_a_launch_is_accused_of_its_own_difference(divergence: Divergence, who: Accused) -> None:
    assert accused(divergence) == who


@pytest.mark.parametrize(
    ("cause", "who"),
    [
        (
            OperatorCause(("aten::mm", "aten::add"), ("", "1"), "ab", proven=True),
            Accused("operator", "aten::add"),
        ),
        (
            OperatorCause(("aten::mm", ""), ("", ""), "a", proven=True, through=("aten::relu",)),
            Accused("operator", "aten::mm", runs="a", through=("aten::relu",)),
        ),
        (
            OperatorCause(("aten::mm", "aten::mm"), ("", ""), "ab", proven=False),
            Accused("operator", "aten::mm", certain=False),
        ),
        (Host("b", WRITER, through=("aten::mm",)), Accused("host", "", None, 1, 2, "b", True, ("aten::mm",))),
        (Host("", None, proven=False), Accused("host", "", runs="ab", certain=False)),
        (OtherTensor("launch #1 writer", "launch #2 other"), reader("configuration")),
        (WrittenElsewhere(WRITER, "b"), Accused("configuration", "writer", "out_ptr", 1, 2)),
        (StreamCause(WRITER), Accused("order", "writer", "out_ptr", 1, 2)),
        (Uninitialised(WRITER, through=("aten::mm",)), reader("uninitialised", through=("aten::mm",))),
        (Overrun(WRITER, "b"), Accused("out of bounds", "writer", "out_ptr", 1, 2, "b")),
        (UnknownCause("it was not recorded"), reader("unknown", certain=False)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_cause_of_a_different_input_is_accused_and_not_its_reader(cause: Cause, who: Accused) -> None:
    assert accused(InputDiffers(PAIR, 0, cause)) == who
