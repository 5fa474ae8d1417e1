"""Write files that a user also edits; all contents are computed before any file is written.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vscode import jsonc


class Files:
    """The new contents of the files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts: dict[Path, str] = {}

    def edit(self, name: str, change: Callable[[str], str], empty: Any) -> None:
        """Compute the content of a file that the user may have edited. Raises Malformed, with its path."""
        path = self.folder / name
        before = self.texts.get(path) or (self._text(path) if path.exists() else "")
        try:
            self.texts[path] = change(before if before.strip() else jsonc.dumped(empty))
        except jsonc.Malformed as error:
            raise jsonc.Malformed(f"{path}, {error}") from None

    def set_members(self, name: str, members: dict[str, Any]) -> None:
        """Add members to an object, except those that the user has set."""

        def change(text: str) -> str:
            for key, value in members.items():
                text = jsonc.with_member(text, key, value)
            return text

        self.edit(name, change, {})

    def write(self) -> list[Path]:
        """Write the changed files; return their paths."""
        changed = [path for path, text in self.texts.items() if not path.exists() or self._text(path) != text]
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.name}.new")
            with temporary.open("w", encoding="utf-8", newline="") as file:
                file.write(self.texts[path])
            temporary.replace(path)
        return changed

    def _text(self, path: Path) -> str:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
