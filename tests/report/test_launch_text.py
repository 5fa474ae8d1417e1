"""One launch as text: its line of Python, and the digests of its arguments."""

from __future__ import annotations

import pytest
from handmade.records import META, arg, launch
from msgspec.structs import replace

from tracing.analyze.runs.call_sites import LaunchOrigin
from tracing.model import CallSite, CopiedFunction, Digest, KernelArg
from tracing.report.launch import launch_in_full
from tracing.report.text import launch_text, source_position
from tracing.store.graph_file import PythonLine

CALL, OPERATION = CallSite(0, "/case.py", 9, "forward"), CallSite(-1, "/case.py", 10, "forward")
LINE = PythonLine("/case.py", 10, "forward", "x * 2")


def test_the_line_of_an_operation_is_labelled_alike_in_a_listing_and_in_full() -> None:
    listed = list(launch_text(replace(launch(0), site=OPERATION)))
    full = list(map(str, launch_in_full(launch(0), LaunchOrigin(CALL, 0, 1, (LINE,)))))

    assert listed[0].endswith("  # computes /case.py:10 in forward")
    assert full[1:3] == [
        "    computes  /case.py:10 in forward: x * 2",
        "    graph at  /case.py:9 in forward",
    ]


def test_the_line_of_a_call_is_labelled_alike_in_a_listing_and_in_full() -> None:
    listed = list(launch_text(replace(launch(0), site=CALL)))
    full = list(map(str, launch_in_full(launch(0), LaunchOrigin(CALL, 0, 1))))

    assert listed[0].endswith("  # at /case.py:9 in forward")
    assert full[1] == "    at        /case.py:9 in forward"


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/gone/c2.py:10", "/model/ops.py:3, which torch.compile copied to c2.py:10"),
        ("/gone/c2.py:20", "/model/ops.py:30, which torch.compile copied to c2.py:20"),
        ("/gone/c3.py:10", "c3.py:10"),
    ],
)
def test_a_kernel_that_was_copied_is_where_its_user_wrote_it(file: str, shown: str) -> None:
    helper, kernel = (
        CopiedFunction("/gone/c2.py", *at)
        for at in ((25, 4, "/model/ops.py", 30), (12, 9, "/model/ops.py", 3))
    )

    assert source_position(file, (helper, kernel)) == shown


def test_the_content_of_an_output_that_nothing_had_written_is_not_counted() -> None:
    garbage, result = Digest("a" * 32, nan=1242, l1=3.09e39), Digest("b" * 32, l1=1.5)
    made = launch(0, arg("x", "in", "a"), KernelArg("y", "out", META, 2, None, garbage, result))
    lines = [str(line).strip() for line in launch_in_full(made, None, {1})]

    assert lines[-2:] == [f"before {'a' * 32}  not yet written", f"after  {'b' * 32}  l1=1.5"]


def test_a_source_has_its_folder_only_while_the_file_exists() -> None:
    assert source_position(f"{__file__}:7") == f"{__file__}:7"
    assert source_position("/tmp/deleted/c3x.py:7") == "c3x.py:7"


def test_a_tensor_without_magnitudes_has_no_sum_of_them() -> None:
    lines = [str(line).strip() for line in launch_in_full(launch(0, arg("x", "in", "a")), None)]

    assert lines[-1] == "after  a"
