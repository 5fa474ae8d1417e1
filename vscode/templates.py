"""Read the templates of VSCode's files, and fill in the facts of this machine.

Standard library only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def words(value: Any, known: dict[str, Any]) -> Any:
    """A template with its @WORDS@ filled in; a placeholder in a list may become several items."""
    if isinstance(value, dict):
        return {key: words(item, known) for key, item in value.items()}
    if isinstance(value, list):
        filled = [words(item, known) for item in value]
        return [one for item in filled for one in (item if isinstance(item, list) else [item])]
    if isinstance(value, str):
        if value in known:
            return known[value]
        for word, text in known.items():
            value = value.replace(word, str(text))
    return value


def template(name: str, known: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = words(json.loads((HERE / name).read_text(encoding="utf-8")), known)
    return filled
