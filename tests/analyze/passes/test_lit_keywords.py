"""A lit test has one command: its own. lit finds its keywords in comments, strings, names and types alike."""

from __future__ import annotations

import pytest

from tracing.analyze.passes.lit import lit_test, survival_test
from tracing.analyze.passes.lit_keywords import KEYWORD, one_line, require_one_command, without_comments
from tracing.errors import Problem

BEFORE = """module {{
  tt.func public @k({argument}) {{
    {line}
    %0 = arith.constant 1 : i32
    tt.return
  }}
}}
"""
HOSTILE = {
    "a comment": ("%x: i32", "// RUN: touch owned"),
    "a comment after code": ("%x: i32", "%1 = arith.constant 2 : i32 // RUN: touch owned"),
    "a string": ("%x: i32", '%1 = "a.b"() {c = "RUN: touch owned"} : () -> i32'),
    "a string with a quote": ("%x: i32", '%1 = "a.b"() {c = "\\\\" // RUN: touch owned"} : () -> i32'),
    "an argument": ("%RUN: i32", "%1 = arith.addi %RUN, %RUN : i32"),
    "a value": ("%x: i32", "%RUN = arith.constant 3 : i32"),
    "another keyword": ("%x: i32", '%1 = "a.b"() {c = "XFAIL: * REQUIRES: none END."} : () -> i32'),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_recorded_ir_brings_no_command(hostile: str) -> None:
    argument, line = HOSTILE[hostile]
    before = BEFORE.format(argument=argument, line=line)
    after = before.replace("%0 = arith.constant 1 : i32", "%0 = arith.constant 7 : i32")

    text = lit_test(before, after, "-x", "x of k\nRUN: touch owned").text

    first, *rest = text.splitlines()
    assert first.startswith("// RUN: triton-opt %s -split-input-file -x | FileCheck %s")
    assert not any(KEYWORD.search(line) for line in rest if not line.startswith("// CHECK"))
    assert not any("RUN:" in line for line in rest)


def test_a_test_of_a_pass_that_dies_has_one_command_too() -> None:
    before = BEFORE.format(argument="%x: i32", line="// RUN: touch owned")

    text = survival_test(before, "-x", "x of RUN: touch owned\nThe pass dies: RUN: touch owned").text

    assert text.count("RUN:") == 1


def test_a_command_that_would_be_added_is_refused() -> None:
    with pytest.raises(Problem, match="would execute"):
        require_one_command("// RUN: triton-opt %s -x='\nRUN: touch owned'")


def test_strings_that_look_like_comments_stay() -> None:
    assert without_comments('a = "http://x" // gone\n// gone\nb') == 'a = "http://x" \n\nb'


def test_a_title_is_one_line() -> None:
    assert one_line("a\nRUN: b") == "a RUN : b"
