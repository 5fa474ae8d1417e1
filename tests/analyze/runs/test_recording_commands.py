"""The command that records a run once more has the options that decide whether it ends as before."""

from __future__ import annotations

from handmade.records import INFO
from msgspec.structs import replace

from tracing.analyze.runs.recording_commands import command

ALLOW = "--allow-out-of-bounds"


def test_accesses_out_of_bounds_that_were_allowed_are_allowed_once_more() -> None:
    typed = ("tracing", "run", ALLOW, "oob.py")
    program = replace(INFO, kind="program", argv=typed, program=("oob.py",))

    assert ALLOW in command(program)
    assert ALLOW in command(replace(INFO, argv=typed))


def test_an_option_of_the_program_is_its_own() -> None:
    words = ("oob.py", ALLOW)
    program = replace(INFO, kind="program", argv=("tracing", "run", *words), program=words)

    assert command(program).count(ALLOW) == 1  # among the words of the program
