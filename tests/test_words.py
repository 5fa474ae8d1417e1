"""The lint of words: the texts that it reads, and the terms that it allows."""

from __future__ import annotations

import pytest

from scripts import lint_words

WAY, TOLD, BEHIND, AGAIN = "way", "Told", "behind", "again"  # names, since the lint reads this file too


def words(path: str, text: str) -> list[tuple[int, str]]:
    return [(use.line, use.word) for use in lint_words.uses(path, text)]


def test_docstrings_comments_and_messages_are_read() -> None:
    text = f'"""One {WAY}.\n\n{TOLD} later.\n"""\n\nX = "an error {BEHIND} it"  # {AGAIN}\n'

    assert words("x.py", text) == [(1, WAY), (3, TOLD), (6, AGAIN), (6, BEHIND)]


def test_names_of_tests_are_read_and_names_of_other_functions_are_not() -> None:
    text = f"def test_one_{WAY}(): ...\n\n\ndef test_in_place(): ...\n\n\ndef one_{WAY}(): ...\n"

    assert words("x.py", text) == [(1, WAY)]


def test_every_name_is_read_in_folders_that_were_cleaned() -> None:
    text = f"class One{TOLD}: ...\n\n\ndef f(in_place: int, one_{WAY}: int) -> None:\n    self.{BEHIND} = 1\n"

    assert words("vscode/x.py", text) == [
        (1, f"One{TOLD}"), (4, f"one_{WAY}"), (5, BEHIND),
    ]  # fmt: skip
    assert words(f"vscode/{AGAIN}.py", "") == [(1, AGAIN)]
    assert words("x.py", text) == []


def test_found_is_no_name_of_a_variable_but_may_be_a_field() -> None:
    text = "def f(found): ...\n\n\nclass C:\n    found: int\n\n\nfound = 1\n"

    assert words("x.py", text) == [(1, "found"), (8, "found")]


def test_code_of_pages_is_not_read() -> None:
    text = f"A `{WAY}` there.\n\n```\n{BEHIND}\n```\n\n{AGAIN}.\n"

    assert words("x.md", text) == [(7, AGAIN)]


@pytest.mark.parametrize("term", lint_words.ALLOWED)
def test_terms_of_the_field_are_allowed(term: str) -> None:
    assert words("x.md", f"Text with {term} in it.\n") == []


def test_comments_of_make_and_toml_are_read() -> None:
    assert words("Makefile", f"run: ## record {AGAIN}\n\t@run {AGAIN}\n") == [(1, AGAIN)]
