"""Request a native debug session on this process from VSCode, through its debugpy session.

debugpy announces a child process to VSCode with the event `debugpyAttach`, whose body is a debug
configuration; VSCode's extension hands it to `startDebugging`, whatever its type is. Here the body is the
native configuration that `make vscode` wrote, with this process's number. The event is documented for
debugpy's own clients; the extension also accepts other types (ms-python.debugpy 2026.7).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tracing.attach.compiling import Compiling

_EVENT = 9999  # pydevd has no command of this number: it only logs it


def request(configuration: Path | None, now: Compiling, name: str) -> bool:
    """Send the event; False if there is no configuration, or no debugpy in this process.

    configuration -- a JSON file; in its strings {pid}, {kernel}, {stage} and {pass} are filled in; a string
                     that is "{pid}" becomes a number
    name          -- of the pass
    """
    if configuration is None or "pydevd" not in sys.modules:
        return False
    template = json.loads(configuration.read_text(encoding="utf-8"))
    words = {
        "{kernel}": now.kernel,
        "{stage}": now.stage,
        "{pass}": name,
        "{pid}": str(now.pid),
    }
    return _send(_filled(template, words, now.pid))


def _filled(value: Any, words: dict[str, str], pid: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, words, pid) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words, pid) for item in value]
    if value == "{pid}":
        return pid
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
    return value


def _send(body: dict[str, Any]) -> bool:
    # pydevd has no public function that sends a custom event
    import pydevd  # type: ignore[import-not-found]  # debugpy puts it on the path of the process
    from _pydevd_bundle.pydevd_net_command import NetCommand  # type: ignore[import-not-found]

    debugger = pydevd.get_global_debugger()
    if debugger is None or debugger.writer is None:
        return False
    event = {"type": "event", "event": "debugpyAttach", "body": body}
    debugger.writer.add_command(NetCommand(_EVENT, 0, event, is_json=True))
    return True
