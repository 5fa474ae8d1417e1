"""Replace secrets in the recorded environment variables, command line and options of a case.

A value is secret if its name contains token, secret, passw or key, or if it is the user and password of a
URL. A number or a bool is secret only if the name contains secret or passw: `tokens=128` and `key_dim=64` are
sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

REDACTED = "REDACTED"  # safe in a path, as the options of a case are in its run's name
_NAME = re.compile("token|secret|passw|key", re.IGNORECASE)
_ALWAYS = re.compile("secret|passw", re.IGNORECASE)
_PLAIN = re.compile(r"-?\d{1,9}(\.\d{1,9})?|true|false", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")  # to the last @: a password may contain one
_OPTION = re.compile(
    r"(?P<name>[^\s=,:+]*(?:token|secret|passw|key)[^\s=,]*)=(?P<value>.*?)(?=,[a-z_]\w*=|$)", re.IGNORECASE
)


def is_secret(name: str, value: str) -> bool:
    """True if the value of a variable or an option of this name is not recorded."""
    named = _NAME.search(name) is not None
    return named and (_PLAIN.fullmatch(value) is None or _ALWAYS.search(name) is not None)


def redacted_text(text: str) -> str:
    """A text without credentials in URLs, and without the values of secret options, `NAME=VALUE`."""
    return _OPTION.sub(_redacted_option, _CREDENTIALS.sub(f"{REDACTED}@", text))


def redacted_value(name: str, value: str) -> str:
    """The value of a variable, or the text that is recorded instead."""
    return REDACTED if is_secret(name, value) else redacted_text(value)


def redacted_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command line: `--api-key VALUE`, `--api-key=VALUE` and `CASE:token=VALUE` lose the value."""
    return tuple(_redacted(arguments))


def _redacted(arguments: Sequence[str]) -> Iterator[str]:
    option = ""  # the previous word, if it is an option with this word as its value
    for word in arguments:
        is_option = word.startswith("-")
        yield redacted_value("" if is_option else option, word)
        option = word if is_option and "=" not in word else ""


def _redacted_option(option: re.Match[str]) -> str:
    name, value = option["name"], option["value"]
    return f"{name}={REDACTED}" if is_secret(name, value) else f"{name}={value}"
