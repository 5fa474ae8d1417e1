"""Compare two texts of IR by meaning, ignoring names, the order of phi operands and metadata numbers.

A compile that resumes from text lacks two things that the text does not contain: the order in which a value's
users were created, which determines the order of a phi's incoming values, and names that come from locations.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import cache, partial

from tracing.analyze.passes.operations import without_locations
from tracing.analyze.passes.renaming import renamed

_DEBUG = re.compile(
    r",? !dbg !\d+|^[ \t]*#dbg_\w+\(.*\)\n|^; ModuleID = .*\n|^source_filename = .*\n", re.MULTILINE
)
_METADATA = re.compile(r"^!(\d+) = (.*)\n", re.MULTILINE)
_NAMED_METADATA = re.compile(r"^![\w.]+ = .*\n", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^attributes (#\d+) = (.*)\n", re.MULTILINE)
_REFERENCE = re.compile(r"!(\d+)")
_FUNCTION = re.compile(r"^define .*?(?:^}\n|\Z)", re.MULTILINE | re.DOTALL)
_DEFINED = re.compile(r'^[ \t]*(%(?:[\w$.-]+|"[^"]*")) = |^([\w$.-]+|"[^"]*"):', re.MULTILINE)
_VALUE = re.compile(r'%(?:[\w$.-]+|"[^"]*")')
_LABEL = re.compile(r'^([\w$.-]+|"[^"]*"):.*$', re.MULTILINE)
_PHI = " = phi "
_INCOMING = re.compile(r"\[[^\]]*\]")
_SPACES = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)
_ALIAS = re.compile(r"^(#\w+) = ", re.MULTILINE)
_ALIAS_USE = re.compile(r"#\w+")
_PTX_LOCATION = re.compile(r"^[ \t]*(?:\.loc|\.file)\b.*\n|^[ \t]*//.*\n|^\$L__tmp\d+:\n", re.MULTILINE)
_PTX_SECTION = re.compile(
    r"^[ \t]*\.section[ \t]+\.debug\w*\s*\{.*?(?:^[ \t]*\}\n|\Z)", re.MULTILINE | re.DOTALL
)
_AMD_LOCATION = re.compile(
    r"^[ \t]*(?:\.loc|\.file)\b.*\n|^[ \t]*;.*\n|^\.L(?:tmp|func_)\w*:.*\n", re.MULTILINE
)
_AMD_SECTION = re.compile(
    r"^[ \t]*\.section[ \t]+\.debug\w*.*\n(?:(?![ \t]*\.(?:section|text|data|amd\w+)\b).*\n)*", re.MULTILINE
)
DEPTH = 3  # compared levels of nested metadata, as that of loops and ranges


def same(a: str, b: str, stage: str) -> str:
    """Why two unequal texts of one stage are equivalent; "" if they are equal or not equivalent.

    stage -- "ttir", "ttgir", "llir", "ptx", "amdgcn"
    """
    if a == b:
        return ""
    for what, plain in _SPELLINGS.get(stage, _MLIR).items():
        if plain(a, b):
            return what
    return ""


def _mlir(a: str, b: str, *, names: bool) -> bool:
    a, b = _mlir_plain(a), _mlir_plain(b)
    return a == (renamed(a, b) if names else b)


def _mlir_plain(text: str) -> str:
    # without what only locations need: the space before them, and names of attributes that describe lines
    text = _SPACES.sub("", without_locations(text))
    names = Counter(_ALIAS_USE.findall(text))
    while unused := {name for name in _ALIAS.findall(text) if names[name] == 1}:
        lines = [line for line in text.splitlines(True) if line.partition(" = ")[0] not in unused]
        text = "".join(lines)
        names = Counter(_ALIAS_USE.findall(text))
    return text


def _llvm(a: str, b: str, *, names: bool) -> bool:
    return _llvm_plain(a, names) == _llvm_plain(b, names)


def _llvm_plain(text: str, names: bool) -> str:
    text = _DEBUG.sub("", text)
    metadata = {number: content for number, content in _METADATA.findall(text)}
    attributes = dict(_ATTRIBUTES.findall(text))
    for pattern in (_METADATA, _NAMED_METADATA, _ATTRIBUTES):
        text = pattern.sub("", text)
    expanded = cache(lambda number, depth: _expanded(number, metadata, depth, expanded))
    text = _REFERENCE.sub(lambda match: expanded(match[1], DEPTH), text)
    text = re.sub(r"#\d+", lambda match: attributes.get(match[0], match[0]), text)
    if names:
        text = _FUNCTION.sub(lambda match: _numbered(match[0]), text)
    text = re.sub(r"(?<![ \t])[ \t]*; preds = .*$", "", text, flags=re.MULTILINE)
    return "\n".join(_sorted_phi(line) if _PHI in line else line for line in text.split("\n"))


def _expanded(number: str, metadata: dict[str, str], depth: int, expanded: Callable[[str, int], str]) -> str:
    # as a digest: text with nested references would grow exponentially
    content = metadata.get(number, "")
    if depth == 0 or content.removeprefix("distinct ").startswith("!DI"):
        return "!{}"
    content = _REFERENCE.sub(lambda match: expanded(match[1], depth - 1), content)
    return hashlib.blake2b(content.encode(errors="replace"), digest_size=16).hexdigest()


def _numbered(function: str) -> str:
    # values and blocks by the order in which they are defined: a phi may use one before that
    head, _, body = function.partition("\n")
    order = _VALUE.findall(head)
    order += [value or f"%{label}" for value, label in _DEFINED.findall(body)]
    names = {name: f"%v{number}" for number, name in enumerate(dict.fromkeys(order))}
    text = _VALUE.sub(lambda match: names.get(match[0], match[0]), f"{head}\n{body}")
    return _LABEL.sub(lambda match: f"{names.get('%' + match[1], match[1])}:", text)


def _sorted_phi(line: str) -> str:
    # its incoming values are between brackets, and the line may go on after the last of them
    start, stop = line.find("[", line.index(_PHI)), line.rfind("]") + 1
    if not 0 <= start < stop:
        return line
    return f"{line[:start]}{', '.join(sorted(_INCOMING.findall(line[start:stop])))}{line[stop:]}"


def _ptx(a: str, b: str) -> bool:
    plain = [_PTX_LOCATION.sub("", _PTX_SECTION.sub("", text)) for text in (a, b)]
    return plain[0] == plain[1]


def _amdgcn(a: str, b: str) -> bool:
    plain = [_AMD_LOCATION.sub("", _AMD_SECTION.sub("", text)) for text in (a, b)]
    return plain[0] == plain[1]


_MLIR: dict[str, Callable[[str, str], bool]] = {
    "locations": partial(_mlir, names=False),
    "names of values and locations": partial(_mlir, names=True),
}
_SPELLINGS: dict[str, dict[str, Callable[[str, str], bool]]] = {
    "llir": {
        "locations and the order of phis": partial(_llvm, names=False),
        "names of values, the order of phis and locations": partial(_llvm, names=True),
    },
    "ptx": {"locations": _ptx},
    "amdgcn": {"locations": _amdgcn},
}
