"""README and docs: links lead to files and headings that exist, and shell blocks run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import ROOT
from documents.blocks import record_demo, run_block
from documents.help_examples import example
from documents.pages import NEEDS, PAGES, Block, anchors, blocks, links
from test_layers import LAYERS

from tracing.cli import app

BLOCKS = blocks()
README_LINES = 150


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    record_demo(folder)
    return folder


def commands() -> set[str]:
    group: Any = typer.main.get_command(app)
    return {name for name in group.list_commands(None) if not group.commands[name].hidden}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page

        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_of_the_docs_is_linked_from_another_page() -> None:
    linked = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)}

    assert set(PAGES) - linked == {ROOT / "README.md"}


def test_every_command_has_a_page_or_is_named_on_the_page_of_opt() -> None:
    pages = {page.stem for page in PAGES if page.parent.name == "commands"}
    opt = (ROOT / "docs/commands/opt.md").read_text()

    assert {name for name in commands() - pages if f"`tracing {name}`" not in opt} == set()


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_page_of_a_command_names_each_of_its_options(name: str) -> None:
    group: Any = typer.main.get_command(app)
    page = ROOT / f"docs/commands/{name}.md"
    text = (page if page.exists() else ROOT / "docs/commands/opt.md").read_text()
    options = [one.opts + one.secondary_opts for one in group.get_command(None, name).params]
    flags = [names for names in options if names[0].startswith("-")]

    assert [names for names in flags if not any(re.search(rf"`{name}\b", text) for name in names)] == []


def test_the_page_of_json_has_a_section_for_every_command() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/json.md").read_text(), re.MULTILINE)
    documented = {name for heading in headings for name in re.findall(r"`tracing ([\w-]+)", heading)}

    assert documented == commands()


def test_the_table_of_layers_equals_the_tested_one() -> None:
    text = (ROOT / "docs/architecture.md").read_text().partition("\n## Layers\n")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", text, re.MULTILINE)
    table = {layer: set(re.findall(r"`([\w.]+)`", cell)) - {"tracing"} for layer, cell in rows}

    assert table == {
        layer: imported - {layer} for layer, imported in LAYERS.items() if not layer.startswith("__")
    }


def test_readme_has_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_the_program_of_readme_logs_its_launch_on_the_virtual_gpu(tmp_path: Path) -> None:
    codes = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    (program,) = (one for one in codes if "DebugMode" in one)
    (tmp_path / "program.py").write_text(program)

    command = [sys.executable, "-m", "tracing", "run", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.lstrip().startswith("[Triton] triton_")


def of_help(name: str) -> Any:
    """The examples that take a second run here, the others in the soak."""
    quick = {"cases", "list", "show", "passes", "line", "compare", "winners", "sql", "lit", "clean"}
    return pytest.param(name, marks=[] if name in quick else [pytest.mark.soak])


@pytest.mark.parametrize("name", [of_help(name) for name in sorted(commands() - {"serve", "debug"})])
def test_the_example_of_a_help_gives_an_answer(name: str, recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "runs", tmp_path / "runs")
    own = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", example(name)],
        cwd=tmp_path,
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (0, 1) and done.stdout, done.stderr


def marked(block: Block) -> Any:
    """Examples of the commands and of long searches run in the soak: other tests run them in another form."""
    long = any(file in str(block) for file in ("docs/commands/", "docs/bisect-case.md"))
    return pytest.param(block, marks=[pytest.mark.soak] if long else [])


def test_needs_of_shell_blocks_are_known() -> None:
    assert "" in {block.needs for block in BLOCKS} <= {"", *NEEDS}


@pytest.mark.parametrize("block", [*map(marked, BLOCKS)], ids=str)
def test_a_shell_block_runs_with_the_exit_status_that_it_promises(
    block: Block, recorded: Path, tmp_path: Path
) -> None:
    if block.needs:
        runner = "; `make soak` runs it" if block.needs in ("time", "gdb") else ""
        pytest.skip(f"{block} needs {block.needs}{runner}")

    run_block(block, recorded, tmp_path)
