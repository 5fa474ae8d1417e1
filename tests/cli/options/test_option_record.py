from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from tracing.cli.options.option_record import with_option_records


@dataclass(frozen=True)
class Paint:
    """The options of a command."""

    coats: Annotated[int, typer.Option(help="How often.")]
    dry: Annotated[bool, typer.Option("--dry", help="Wait.")] = False


@with_option_records
def paint(wall: Annotated[str, typer.Argument()], how: Paint, note: str = "none") -> None:
    """Paint a wall."""
    typer.echo(f"{wall} {how} {note}")


app = typer.Typer()
app.command()(paint)


def test_each_field_of_a_record_of_options_is_an_option() -> None:
    result = CliRunner().invoke(app, ["north", "--coats", "2", "--dry", "--note", "blue"])

    assert result.stdout == "north Paint(coats=2, dry=True) blue\n"


def test_a_field_keeps_its_default_and_one_without_default_is_required() -> None:
    assert "dry=False" in CliRunner().invoke(app, ["north", "--coats", "2"]).stdout
    assert CliRunner().invoke(app, ["north"]).exit_code == 2


def test_the_record_itself_is_no_option() -> None:
    assert CliRunner().invoke(app, ["north", "--coats", "2", "--how", "x"]).exit_code == 2
