"""A headless Chromium, driven through its debugging pipe: keys, clicks, text and screenshots of one page."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

KEYS = {"F1": 112, "F5": 116, "F10": 121, "Enter": 13, "Escape": 27, "D": 68, "P": 80, "Y": 89}
SHIFT, CONTROL = 8, 2


class Browser:
    """One page of a Chromium that ends with `close`."""

    def __init__(self, executable: str, profile: Path, url: str) -> None:
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command = [executable, *flags, "--window-size=1500,950", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )  # dash knows no file descriptor above 9
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.numbers = itertools.count(1)
        self.session = ""
        target = self.ask("Target.createTarget", url=url)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol; return its result."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = json.loads(self._message())
            if answer.get("id") == number:
                assert "result" in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _message(self) -> bytes:
        read = bytearray()
        while (byte := self.reader.read(1)) != b"\0":
            assert byte, "the browser has ended"
            read += byte
        return bytes(read)

    def evaluate(self, script: str) -> Any:
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """The visible text of the first element that matches; "" if there is none."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait(self, wanted: str, selector: str, seconds: float) -> float:
        """Wait until an element has a text, in any case; return the seconds that it took."""
        started = time.monotonic()
        while wanted.lower() not in self.text(selector).replace("\xa0", " ").lower():
            passed = time.monotonic() - started
            assert passed < seconds, f"no {wanted!r} within {seconds} s in: {self.text()[-3000:]}"
            time.sleep(0.1)
        return time.monotonic() - started

    def press(self, key: str, modifiers: int = 0) -> None:
        code = f"Key{key}" if len(key) == 1 else key
        known = {"key": key, "code": code, "windowsVirtualKeyCode": KEYS[key], "modifiers": modifiers}
        self.ask("Input.dispatchKeyEvent", type="rawKeyDown", **known)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **known)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def click(self, selector: str) -> bool:
        """Click the middle of the first element that matches; False if there is none."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased") if box else ():
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        return bool(box)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.close()
