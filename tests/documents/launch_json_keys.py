"""The keys and types that debuggers document for launch.json, written from their documentation.

- debugpy: vscode-python-debugger 2026.7 (https://code.visualstudio.com/docs/python/debugging)
- cppdbg: vscode-cpptools 1.34 (https://code.visualstudio.com/docs/cpp/launch-json-reference)
- lldb: CodeLLDB 1.12 (its MANUAL.md, "Launching" and "Attaching")
- lldb-dap: LLVM 19 (lldb/tools/lldb-dap/README.md), what is in both requests
- triton-gdb: vscode/extension/package.json of this repository

The first two were compared in November 2026 with `contributes.debuggers` of the extensions' package.json,
which has all keys here, except for one that says so. The debuggers ignore unknown keys; here they are faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TEXT, FLAG, NUMBER, TEXTS, MAP = str, bool, int, [str], {str: str}
COMMON = {
    "name": TEXT,
    "type": TEXT,
    "request": TEXT,
    "preLaunchTask": TEXT,
    "postDebugTask": TEXT,
    "presentation": dict,
    "internalConsoleOptions": TEXT,
}
_DEBUGPY = {
    "justMyCode": FLAG,
    "subProcess": FLAG,
    "redirectOutput": FLAG,
    "showReturnValue": FLAG,
    "logToFile": FLAG,
    "pathMappings": list,
    "consoleName": TEXT,
}
_CPPDBG = {
    "program": TEXT,
    "MIMode": TEXT,
    "miDebuggerPath": TEXT,
    "miDebuggerArgs": TEXT,
    "setupCommands": [{"text": TEXT, "description": TEXT, "ignoreFailures": FLAG}],
    "sourceFileMap": dict,
    "symbolLoadInfo": {"loadAll": FLAG, "exceptionList": TEXT},
    "logging": dict,
    "additionalSOLibSearchPath": TEXT,
    "targetArchitecture": TEXT,
}
_LLDB = {
    "program": TEXT,
    "sourceMap": MAP,
    "initCommands": TEXTS,
    "preRunCommands": TEXTS,
    "postRunCommands": TEXTS,
    "exitCommands": TEXTS,
    "expressions": TEXT,
    "sourceLanguages": TEXTS,
}
_LLDB_DAP = {
    "program": TEXT,
    "initCommands": TEXTS,
    "preRunCommands": TEXTS,
    "postRunCommands": TEXTS,
    "stopCommands": TEXTS,
    "exitCommands": TEXTS,
    "terminateCommands": TEXTS,
    "sourcePath": TEXT,
    "debuggerRoot": TEXT,
    "timeout": NUMBER,
}
KEYS: dict[tuple[str, str], dict[str, Any]] = {
    ("debugpy", "launch"): {
        **_DEBUGPY,
        "program": TEXT,
        "module": TEXT,
        "code": TEXT,
        "args": TEXTS,
        "python": TEXT,
        "debugAdapterPython": TEXT,
        "debugLauncherPython": TEXT,
        "pythonArgs": TEXTS,
        "cwd": TEXT,
        "env": MAP,
        "envFile": TEXT,
        "console": ("integratedTerminal", "externalTerminal", "internalConsole"),
        "purpose": list,
        "stopOnEntry": FLAG,
    },
    ("debugpy", "attach"): {**_DEBUGPY, "connect": dict, "listen": dict, "processId": (TEXT, NUMBER)},
    ("cppdbg", "launch"): {
        **_CPPDBG,
        "args": TEXTS,
        "cwd": TEXT,
        "environment": [{"name": TEXT, "value": TEXT}],
        "stopAtEntry": FLAG,
        "externalConsole": FLAG,
        "unknownBreakpointHandling": ("throw", "stop"),
    },
    # unknownBreakpointHandling: MIEngine reads it of both (BaseOptions); documented for launch
    ("cppdbg", "attach"): {
        **_CPPDBG,
        "processId": (TEXT, NUMBER),
        "unknownBreakpointHandling": ("throw", "stop"),
    },
    ("lldb", "launch"): {**_LLDB, "args": TEXTS, "cwd": TEXT, "env": MAP, "stopOnEntry": FLAG},
    ("lldb", "attach"): {**_LLDB, "pid": (NUMBER, TEXT), "waitFor": FLAG, "stopOnEntry": FLAG},
    ("lldb-dap", "launch"): {
        **_LLDB_DAP,
        "args": TEXTS,
        "cwd": TEXT,
        "env": (list, dict),
        "stopOnEntry": FLAG,
        "runInTerminal": FLAG,
        "launchCommands": TEXTS,
    },
    ("lldb-dap", "attach"): {**_LLDB_DAP, "pid": (NUMBER, TEXT), "waitFor": FLAG, "attachCommands": TEXTS},
    ("triton-gdb", "launch"): {"program": TEXT, "args": TEXTS, "cwd": TEXT, "gdb": TEXT, "commands": TEXTS},
    ("triton-gdb", "attach"): {"program": TEXT, "pid": (NUMBER, TEXT), "gdb": TEXT, "commands": TEXTS},
}
NEEDED = {
    ("debugpy", "launch"): [("program", "module", "code")],
    ("cppdbg", "launch"): [("program",)],
    ("cppdbg", "attach"): [("program",)],
    ("lldb", "launch"): [("program",)],
    ("lldb", "attach"): [("pid", "program")],
    ("lldb-dap", "launch"): [("program",)],
    ("lldb-dap", "attach"): [("pid", "program")],
    ("triton-gdb", "launch"): [("program",)],
    ("triton-gdb", "attach"): [("pid",)],
}


def faults(entry: dict[str, Any]) -> list[str]:
    """The keys and values of a configuration that its debugger does not document."""
    kind = (entry.get("type", ""), entry.get("request", ""))
    if kind not in KEYS:
        return [f"no debugger has {kind}"]
    faults = list(_faults(entry, {**COMMON, **KEYS[kind]}, ""))
    faults += [
        f"{' or '.join(names)} is missing" for names in NEEDED.get(kind, []) if not any(map(entry.get, names))
    ]
    return faults


def _faults(value: Any, wanted: Any, where: str) -> Iterator[str]:
    if isinstance(wanted, tuple):
        kinds = [one for one in wanted if isinstance(one, type)]
        if value not in wanted and type(value) not in kinds:
            yield f"{where} is {value!r}, not one of {wanted}"
    elif isinstance(wanted, type):
        if type(value) is not wanted:
            yield f"{where} is {value!r}, not a {wanted.__name__}"
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            yield f"{where} is {value!r}, not a list"
        else:
            for index, item in enumerate(value):
                yield from _faults(item, wanted[0], f"{where}[{index}]")
    elif not isinstance(value, dict):
        yield f"{where} is {value!r}, not an object"
    else:
        for key, item in value.items():
            known = wanted.get(str, wanted.get(key))
            if known is None:
                yield f"{where}.{key} is unknown"
            else:
                yield from _faults(item, known, f"{where}.{key}")
