"""Every command's help has a first sentence, a valid example and the exit status, in 80 columns."""

from __future__ import annotations

import re
import shlex
from functools import cache

import pytest
from documents.help_examples import GROUP, example
from typer.testing import CliRunner

from tracing.cli.app import app
from tracing.cli.options.outputs import OutputFileOption, OutputFolderOption
from tracing.cli.options.program_words import OPTIONS_FIRST, ProgramCommand

COMMANDS = [name for name in GROUP.list_commands(None) if not GROUP.commands[name].hidden]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@cache
def printed(*command: str) -> str:
    """The help of a command on a terminal of 80 columns."""
    variables = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"}
    done = CliRunner().invoke(app, [*command, "--help"], env=variables)
    assert done.exit_code == 0, done.output
    return ESCAPES.sub("", done.output)


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_fits_80_columns(command: tuple[str, ...]) -> None:
    assert [line for line in printed(*command).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_one_sentence(name: str) -> None:
    sentence = GROUP.commands[name].help.split("\n\n")[0]

    assert sentence[0].isupper() and sentence.endswith(".") and ". " not in sentence


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_the_exit_status_means(name: str) -> None:
    assert re.search(r"^Exit status: \S", GROUP.commands[name].help, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_can_be_copied_as_it_is_printed(name: str) -> None:
    shown = printed(name).partition("\nExample")[2].partition("\n\n")[0].partition(":")[2]

    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(example(name))  # a shell joins these lines


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_names_no_run_of_the_readers(name: str) -> None:
    named = re.findall(r"[\w-]*-20\d{6}-[\w-]*|\blatest\b(?! *$)|--kernel (?!triton_)\S+", example(name))
    recorded = "&&" in example(name) or name == "clean"

    assert named == [] and ("latest" not in example(name) or recorded)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_is_accepted_by_the_command(name: str) -> None:
    last = re.split(r" (?:\||&&) ", example(name))[-1]
    program, command, *words = shlex.split(last)

    assert (program, command) == ("tracing", name)
    GROUP.commands[name].make_context(name, words, resilient_parsing=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_its_answer_as_json_on_request(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in GROUP.commands[name].params)


def test_the_commands_are_listed_in_the_groups_of_their_questions() -> None:
    lines = printed().splitlines()
    groups = [match[1] for line in lines if (match := re.match(r"([A-Z]\w+):", line))]
    listed = [match[1] for line in lines if (match := re.match(r"  ([a-z][a-z-]+) ", line))]

    assert groups == ["Usage", "Record", "Look", "Compare", "Narrow", "Validate", "Debug", "Share", "Options"]
    assert sorted(listed) == sorted(COMMANDS)
    assert listed.index("list") < listed.index("compare") < listed.index("repeat") < listed.index("bisect")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_breaks_no_name_of_an_option_and_no_choice(name: str) -> None:
    words = set(printed(name).replace(",", " ").split())
    params = [one for one in GROUP.commands[name].params if not getattr(one, "hidden", False)]
    options = [opt for one in params for opt in (*one.opts, *one.secondary_opts) if opt.startswith("-")]

    assert [opt for opt in options if opt not in words] == []


PROGRAMS = [name for name, one in GROUP.commands.items() if isinstance(one, ProgramCommand)]


def test_the_commands_that_take_a_program_take_its_arguments() -> None:
    assert {*PROGRAMS} == {"run", "repeat", "guards", "bisect", "debug", "execute"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_says_that_options_come_before_a_program(name: str) -> None:
    assert OPTIONS_FIRST in " ".join(printed(name).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_has_no_brackets_in_brackets_and_no_name_of_a_variable(name: str) -> None:
    usage = printed(name).partition("\n\n")[0]

    assert "[[" not in usage and "]]" not in usage
    assert not re.search(r"\[[a-z]+\]", usage)


def test_the_program_is_asked_for_its_help_by_h_and_for_its_version() -> None:
    short, version = (CliRunner().invoke(app, [word]) for word in ("-h", "--version"))

    assert ESCAPES.sub("", short.output).split() == printed().split()
    assert re.fullmatch(r"tracing \S+, torch \S+, triton \S+\n", version.output)


def test_output_is_one_option_of_every_command_that_writes_files() -> None:
    params = [one for name in COMMANDS for one in GROUP.commands[name].params]
    named = [one for one in params if "--output" in one.opts or "-o" in one.opts]

    assert len(named) > 5
    helps = {outputs.__metadata__[0].help for outputs in (OutputFileOption, OutputFolderOption)}
    assert {(*sorted(one.opts), one.help) for one in named} == {("--output", "-o", text) for text in helps}


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if any("--output" in one.opts for one in GROUP.commands[name].params)]
)
def test_help_says_what_is_written_without_output(name: str) -> None:
    assert "Without --output" in " ".join(printed(name).split())


def test_cases_are_listed_with_the_first_sentence_of_their_docstring_and_their_options() -> None:
    lines = CliRunner().invoke(app, ["cases"]).output.splitlines()

    assert "silu            SiLU with a gate, sigmoid(x) * x * up: one fused pointwise kernel" in lines
    assert (
        lines[[line.split()[0] for line in lines].index("gated_mlp") + 1].strip() == ":width=64, hidden=128"
    )
    assert {line.split()[0] for line in lines} >= {"silu", "gated_mlp", "ssm"}
