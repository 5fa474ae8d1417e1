"""The lint of words: which words it finds, in which text, and what it leaves out."""

from __future__ import annotations

import pytest
from commands import ROOT

from scripts import lint_words


def words(path: str, text: str) -> list[tuple[int, str]]:
    return [(use.line, use.word) for use in lint_words.uses(path, text)]


def test_no_file_that_is_read_holds_a_banned_word() -> None:
    assert [
        str(use) for name in lint_words.files() for use in lint_words.uses(name, (ROOT / name).read_text())
    ] == []


def test_docstrings_comments_and_messages_are_read() -> None:
    text = '"""One way.\n\nTold later.\n"""\n\nX = "an error behind it"  # again\n'

    assert words("x.py", text) == [(1, "way"), (3, "Told"), (6, "again"), (6, "behind")]


def test_found_is_no_name_of_a_variable_but_may_be_a_field() -> None:
    text = "def f(found): ...\n\n\nclass C:\n    found: int\n\n\nfound = 1\n"

    assert words("x.py", text) == [(1, "found"), (8, "found")]


def test_code_of_pages_is_not_read() -> None:
    text = "A `way` there.\n\n```\nbehind\n```\n\nAside.\n"

    assert words("x.md", text) == [(7, "Aside")]


@pytest.mark.parametrize("term", lint_words.ALLOWED)
def test_terms_of_the_field_are_allowed(term: str) -> None:
    assert words("x.md", f"Text with {term} in it.\n") == []


def test_comments_of_make_and_toml_are_read() -> None:
    assert words("Makefile", "run: ## record again\n\t@run again\n") == [(1, "again")]


def test_every_folder_that_is_not_yet_read_exists() -> None:
    assert [entry for entry in lint_words.NOT_YET if not (ROOT / entry).exists()] == []
