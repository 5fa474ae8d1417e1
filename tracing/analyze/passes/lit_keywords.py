"""Remove lit's keywords from text of a run: lit would execute the text after `RUN:` anywhere in a file.

lit searches every line for its keywords, also in comments, strings and names: `%RUN: i32` is a command. For
MLIR the text is the same with a blank before the colon, or with an escaped colon in a string.
"""

from __future__ import annotations

import re

from tracing.analyze.passes.operations import STRING
from tracing.errors import Problem

# `END.` ends lit's reading; CHECK lines in recorded text would add tests
KEYWORD = re.compile(
    r"(RUN|XFAIL|REQUIRES|UNSUPPORTED|ALLOW_RETRIES|DEFINE|REDEFINE|CHECK[\w-]*)(:)|(END)(\.)"
)
_TOKEN = re.compile(rf"(?P<string>{STRING})|//[^\n]*")


def without_comments(ir: str) -> str:
    """A module's text without comments."""
    return _TOKEN.sub(lambda match: match["string"] or "", ir)


def without_keywords(ir: str) -> str:
    """A module's text without lit's keywords, for MLIR to read; it has no comments."""
    plain, at = [], 0
    for match in _TOKEN.finditer(ir):
        plain += [KEYWORD.sub(_spaced, ir[at : match.start()]), KEYWORD.sub(_coded, match[0])]
        at = match.end()
    return "".join([*plain, KEYWORD.sub(_spaced, ir[at:])])


def check_without_keywords(line: str) -> str:
    """A CHECK line whose pattern has no keywords of lit; FileCheck reads it as it was."""
    directive, colon, pattern = line.partition(": ")
    return f"{directive}{colon}{KEYWORD.sub(_bracketed, pattern)}"


def variable(word: str) -> str:
    """A name for a FileCheck variable that is not a keyword of lit."""
    return f"{word}_" if KEYWORD.search(f"{word}:") else word


def one_line(title: str) -> str:
    """Text for one comment, without lit's keywords."""
    return KEYWORD.sub(_spaced, " ".join(title.split()))


def require_one_command(test: str) -> str:
    """A test whose first line, and no other, is a command; raises Problem if another one is."""
    if test.count("RUN:") != 1 or "\r" in test:
        raise Problem("the test would execute what the recorded IR or a name says", "write it by hand")
    return test


def _bracketed(match: re.Match[str]) -> str:
    return f"{match[1] or match[3]}{{{{[{match[2] or match[4]}]}}}}"


def _spaced(match: re.Match[str]) -> str:
    return f"{match[1] or match[3]} {match[2] or match[4]}"


def _coded(match: re.Match[str]) -> str:
    return f"{match[1] or match[3]}\\{ord(match[2] or match[4]):02X}"
