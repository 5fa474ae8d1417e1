"""The part of VSCode that F5 needs: substitutes variables, and starts sessions, for child processes too."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

from commands import make_vscode
from debugger.dap import Adapter, Message
from debugger.native import early_gdb

ROOT = Path(__file__).parents[2]
INPUTS = {"kernel": "add", "stage": "ttgir", "pass": "tritongpu-coalesce"}


def generated(folder: Path, *options: str, gdb: str = "gdb") -> dict[str, Any]:
    """What `make vscode` writes for this environment, read as VSCode reads it."""
    done = make_vscode(folder, *options, GDB=gdb)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads((folder / ".vscode/launch.json").read_text())
    return read


def chosen(launch: dict[str, Any], name: str, file: Path, **inputs: str) -> Message:
    """One configuration as VSCode hands it on, its variables filled in."""
    entry = next(one for one in launch["configurations"] if one["name"] == name)
    answers = {one["id"]: one["default"] for one in launch["inputs"]}
    answers |= {f"triton-{key}": value for key, value in {**INPUTS, **inputs}.items()}
    known = {f"${{input:{key}}}": value for key, value in answers.items()}
    known |= {"${file}": str(file), "${env:PYTHONPATH}": os.environ.get("PYTHONPATH", "")}
    text = json.dumps(entry)
    for variable, value in known.items():
        text = text.replace(variable, value)
    assert "${" not in text, text
    filled: Message = json.loads(text)
    return filled


class Editor:
    """Runs one configuration of debugpy; stops and requests for native sessions arrive in queues."""

    def __init__(self, configuration: Message, breakpoints: dict[str, list[int]]) -> None:
        self.breakpoints = breakpoints
        self.stops: queue.Queue[tuple[Adapter, Message]] = queue.Queue()
        self.natives: queue.Queue[Message] = queue.Queue()
        self.ended = threading.Event()
        self.sessions: list[Adapter] = []
        self.early = early_gdb(configuration.get("env", {}))
        self._session(Adapter.spawned(sys.executable, "-m", "debugpy.adapter"), configuration)

    def _session(self, adapter: Adapter, configuration: Message) -> None:
        self.sessions.append(adapter)
        adapter.start(configuration, self.breakpoints)
        threading.Thread(target=self._follow, args=(adapter,), daemon=True).start()

    def _follow(self, adapter: Adapter) -> None:
        # a worker that a child forks is announced on the child's session: every session is followed
        while True:
            event = adapter.events.get()
            body: Message = event.get("body") or {}
            if event["event"] == "debugpyAttach" and body["type"] == "debugpy":
                child = Adapter.connected(body["connect"]["host"], body["connect"]["port"])
                threading.Thread(target=self._session, args=(child, body), daemon=True).start()
            elif event["event"] == "debugpyAttach":
                self.natives.put(body)
            elif event["event"] == "stopped":
                self.stops.put((adapter, body))
            elif event["event"] in ("terminated", "closed"):
                if adapter is self.sessions[0]:
                    self.ended.set()
                return

    def close(self) -> None:
        for session in [*self.sessions, *filter(None, [self.early])]:
            session.close()
