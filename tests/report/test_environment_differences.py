"""What two runs differ in before their first launch."""

from __future__ import annotations

from handmade.records import INFO
from msgspec.structs import replace

from tracing.report.run import difference_of_infos


def test_other_arguments_of_a_program_are_a_difference() -> None:
    short, long = (replace(INFO, program=("train.py", "--epochs", count)) for count in ("4", "12"))

    assert [*difference_of_infos(short, long)] == [
        "program differs: train.py --epochs 4 | train.py --epochs 12"
    ]
    assert not [*difference_of_infos(short, short)]
