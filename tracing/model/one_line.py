"""Names in one line: an end of a line in a file's name could pose as a line of ours."""

from __future__ import annotations

import re

_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def one_line(name: str) -> str:
    r"""A name that a user gave or a run holds, with each end of a line written as \u000a."""
    return _ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", name)
