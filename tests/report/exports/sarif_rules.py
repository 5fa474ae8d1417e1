"""The rules of SARIF 2.1.0 for the objects that `tracing export --sarif` writes, as a JSON schema.

Written from the text of the OASIS standard; a number in a comment is its section. No other property is
allowed, so a log that keeps these rules also keeps those of the whole schema.
"""

from __future__ import annotations

from typing import Any


def record(required: str = "", **properties: Any) -> dict[str, Any]:
    """An object with these properties only."""
    return {
        "type": "object", "properties": properties, "required": required.split(),
        "additionalProperties": False,
    }  # fmt: skip


def items(kind: dict[str, Any], **rules: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind, **rules}


TEXT = {"type": "string"}
URI = {"type": "string", "format": "uri-reference", "pattern": r"^[^\s\\]*$"}
MESSAGE = record("text", text=TEXT)  # 3.11
REGION = record("startLine", startLine={"type": "integer", "minimum": 1})  # 3.30
PHYSICAL = record("artifactLocation", artifactLocation=record("uri", uri=URI), region=REGION)  # 3.29, 3.4
RESULT = record(  # 3.27
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations=items(record("physicalLocation", physicalLocation=PHYSICAL)),
)
RULE = record("id", id=TEXT, shortDescription=MESSAGE)  # 3.49
DRIVER = record("name", name=TEXT, rules=items(RULE, uniqueItems=True))  # 3.19
INVOCATION = record(  # 3.20
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    startTimeUtc={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"},
)
RUN = record(  # 3.14
    "tool",
    tool=record("driver", driver=DRIVER),
    automationDetails=record(id=TEXT),
    invocations=items(INVOCATION, uniqueItems=True),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=items(RESULT),
)
LOG = record("version runs", version={"const": "2.1.0"}, runs=items(RUN), **{"$schema": URI})  # 3.13
