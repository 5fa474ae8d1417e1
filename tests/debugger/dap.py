"""A client of the Debug Adapter Protocol, as VSCode is one."""

from __future__ import annotations

import itertools
import json
import os
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]


class Adapter:
    """One debug session: requests with answers, and events in order."""

    def __init__(self, reader: Any, writer: Any, process: subprocess.Popen[bytes] | None = None) -> None:
        self.reader, self.writer, self.process = reader, writer, process
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.answers: dict[int, queue.Queue[Message]] = {}
        self.events: queue.Queue[Message] = queue.Queue()
        self.started: list[subprocess.Popen[bytes]] = []  # what a terminal would show
        threading.Thread(target=self._read, daemon=True).start()

    @classmethod
    def spawned(cls, *command: str, **environment: str) -> Adapter:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
        return cls(process.stdout, process.stdin, process)

    @classmethod
    def connected(cls, host: str, port: int) -> Adapter:
        connection = socket.create_connection((host, port))
        return cls(connection.makefile("rb"), connection.makefile("wb"))

    def send(self, command: str, **arguments: Any) -> queue.Queue[Message]:
        answer: queue.Queue[Message] = queue.Queue()
        number = next(self.numbers)
        self.answers[number] = answer
        self._write({"seq": number, "type": "request", "command": command, "arguments": arguments})
        return answer

    def request(self, command: str, within: float = 60, **arguments: Any) -> Message:
        answer = self.send(command, **arguments).get(timeout=within)
        assert answer["success"], answer
        body: Message = answer.get("body") or {}
        return body

    def event(self, name: str, within: float, fits: Callable[[Message], bool] = lambda body: True) -> Message:
        """The next such event; others before it are put back."""
        skipped, deadline = [], time.monotonic() + within
        try:
            while True:
                event = self.events.get(timeout=max(0.01, deadline - time.monotonic()))
                body: Message = event.get("body") or {}
                if event["event"] == name and fits(body):
                    return body
                assert event["event"] not in ("closed", "terminated"), f"it ended before {name}"
                skipped.append(event)
        finally:
            for one in skipped:
                self.events.put(one)

    def start(self, configuration: Message, breakpoints: dict[str, list[int]]) -> None:
        """Launch or attach, in VSCode's order: breakpoints after `initialized`, then configurationDone."""
        self.request(
            "initialize",
            clientID="vscode",
            adapterID=configuration["type"],
            pathFormat="path",
            linesStartAt1=True,
            columnsStartAt1=True,
            supportsRunInTerminalRequest=True,
        )
        self.send(configuration["request"], **configuration)
        self.event("initialized", 60)
        for path, lines in breakpoints.items():
            wanted = [{"line": line} for line in lines]
            self.request("setBreakpoints", source={"path": path}, breakpoints=wanted)
        self.request("configurationDone")

    def frames(self, stopped: Message, levels: int = 20) -> list[Message]:
        body = self.request("stackTrace", threadId=stopped["threadId"], startFrame=0, levels=levels)
        frames: list[Message] = body["stackFrames"]
        return frames

    def close(self) -> None:
        for process in [*self.started, *filter(None, [self.process])]:
            process.kill()
            process.wait()

    def _write(self, message: Message) -> None:
        content = json.dumps(message).encode()
        with self.lock:
            self.writer.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
            self.writer.flush()

    def _read(self) -> None:
        try:
            while message := self._message():
                if message["type"] == "event":
                    self.events.put(message)
                elif message["type"] == "response":
                    self.answers.pop(message["request_seq"]).put(message)
                else:
                    self._answer(message)
        except (OSError, ValueError):
            pass  # closed
        self.events.put({"event": "closed"})

    def _message(self) -> Message | None:
        length = 0
        while line := self.reader.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self.reader.read(length)) if length else None

    def _answer(self, message: Message) -> None:
        assert message["command"] == "runInTerminal", message
        asked = message["arguments"]
        environment = {**os.environ, **{k: v for k, v in (asked.get("env") or {}).items() if v is not None}}
        process = subprocess.Popen(
            asked["args"], cwd=asked.get("cwd") or None, env=environment, stdin=subprocess.DEVNULL
        )
        self.started.append(process)
        answer = {"seq": next(self.numbers), "type": "response", "request_seq": message["seq"]}
        self._write(
            {**answer, "success": True, "command": "runInTerminal", "body": {"processId": process.pid}}
        )
