"""A recorded launch is recognised in another recording by its kernel, call and inputs, not by its index."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import DATA
from recorded.runs import recorded

from tracing import store
from tracing.analyze.replay.new_recording import launch_recorded_anew
from tracing.errors import Problem
from tracing.record.launches.selection import Selection
from tracing.record.outputs import Keep
from tracing.store.recorded_launch import recorded_launch, same_call

GROW, REACH = 0, 1


class Recorder:
    """Records a case in this process."""

    def __init__(self, case: Path, options: str = "") -> None:
        self.case, self.asked = f"{case}{options}", list[str]()

    def inputs(self, index: int) -> store.Run:
        self.asked.append(f"launch {index}")
        one = Selection(launches=(index, index + 1))
        return recorded(self.case, Path(self.case).parent, selection=one, keep=Keep(inputs=True))

    def calls(self, kernel: str) -> store.Run:
        self.asked.append(kernel)
        return recorded(self.case, Path(self.case).parent, selection=Selection(kernels=(kernel,)))


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "shifted.py"
    path.write_text((DATA / path.name).read_text())
    return path


def test_a_launch_with_the_same_number_and_the_same_inputs_is_the_same(case: Path) -> None:
    run, recorder = recorded(case, case.parent), Recorder(case)

    anew = launch_recorded_anew(recorded_launch(run, REACH), recorder)

    assert (anew.launch.missing, anew.other_inputs, recorder.asked) == ((), (), ["launch 1"])


@pytest.mark.parametrize("index", [GROW, pytest.param(REACH, marks=pytest.mark.soak)])
def test_a_launch_with_a_different_index_is_recognised_by_its_inputs(index: int, case: Path) -> None:
    case.with_name("more").write_text("0")
    run, recorder = recorded(case, case.parent), Recorder(case)
    case.write_text(case.read_text().replace("reach[(1,)](y, y, 0)", "grow[(1,)](y, y, BY=by)", 1))
    one = recorded_launch(run, index)
    case.with_name("more").write_text("2")  # before both come two other launches

    anew = launch_recorded_anew(one, recorder)

    assert (anew.launch.launch.index, anew.other_inputs) == (index + 2, ())
    assert recorder.asked == [f"launch {index}", one.launch.kernel_name, f"launch {index + 2}"]


def test_a_launch_with_different_inputs_is_reported_as_such(case: Path) -> None:
    run = recorded(case, case.parent)

    anew = launch_recorded_anew(recorded_launch(run, GROW), Recorder(case, ":first=3.0"))

    assert anew.other_inputs == ("x_ptr",)


@pytest.mark.parametrize(
    ("before", "after", "has"),
    [
        ("* BY)", "* BY + 1)", "other code"),
        ("z, 16)", "z, 8)", "other numbers"),
    ],
)
def test_a_launch_that_changed_its_kernel_is_refused(before: str, after: str, has: str, case: Path) -> None:
    run, index = recorded(case, case.parent), REACH if before == "z, 16)" else GROW
    case.write_text(case.read_text().replace(before, after))

    with pytest.raises(Problem, match=f"the same call of its kernel, has {has}"):
        launch_recorded_anew(recorded_launch(run, index), Recorder(case))


def test_a_call_that_does_not_recur_is_refused(case: Path) -> None:
    case.with_name("more").write_text("1")
    run = recorded(case, case.parent)
    case.with_name("more").unlink()

    with pytest.raises(Problem, match=r"launched its kernel 1 time, and this is call 1, from 0$"):
        launch_recorded_anew(recorded_launch(run, 2), Recorder(case, ":first=3.0"))


def test_a_partial_recording_does_not_tell_which_call_a_launch_was(case: Path) -> None:
    run = recorded(case, case.parent, selection=Selection(launches=(1, 2)))
    case.with_name("more").write_text("1")

    with pytest.raises(Problem, match="which call of its kernel it was is not known"):
        launch_recorded_anew(recorded_launch(run, REACH), Recorder(case, ":first=3.0"))


def test_the_same_call_may_have_another_index_in_another_run(case: Path) -> None:
    plain = recorded(case, case.parent)
    case.with_name("more").write_text("2")
    longer = recorded(case, case.parent)
    grow, reach = (recorded_launch(plain, index) for index in (GROW, REACH))

    assert same_call(plain, grow.process, grow.launch, longer) == 2
    assert same_call(plain, reach.process, reach.launch, longer) == 0
