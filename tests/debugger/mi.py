"""A client of gdb's machine interface that follows cppdbg configurations like Microsoft's C/C++ extension."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
import time
from typing import Any

_FIELD = re.compile(r'(\w[\w-]*)="((?:[^"\\]|\\.)*)"')


def quoted(argument: str) -> str:
    """As the extension quotes it: a shell reads what it does not quote."""
    return f'"{argument}"' if not argument or set(argument) & set(" \t()") else argument


class Gdb:
    """One gdb; the setup commands of the configuration have run."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        command = [configuration["miDebuggerPath"], "-nx", "-q", "--interpreter=mi3"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=configuration.get("cwd")
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        for one in configuration["setupCommands"]:
            text = one["text"]
            self.run(text if text.startswith("-") else f'-interpreter-exec console "{text}"')

    def run(self, command: str, within: float = 90) -> str:
        """The result record of one command."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        result = self.until(r"\^(done|running|error|connected|exit)", within)
        assert not result.startswith("^error"), f"{command}: {result}"
        return result

    def console(self, command: str) -> str:
        """What a command of gdb's own prints."""
        self.seen.clear()
        self.run(f'-interpreter-exec console "{command}"')
        return "".join(
            line[2:-1].encode().decode("unicode_escape") for line in self.seen if line.startswith("~")
        )

    def stopped(self, within: float = 90) -> dict[str, str]:
        """What the next stop says of its reason and its innermost frame."""
        return dict(_FIELD.findall(self.until(r"\*stopped", within)))

    def until(self, pattern: str, within: float) -> str:
        deadline = time.monotonic() + within
        while True:
            line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            self.seen.append(line)
            if re.match(pattern, line):
                return line

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())
