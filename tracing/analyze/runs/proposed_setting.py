"""The setting of torch that torch's text of a graph break proposes."""

from __future__ import annotations

import re

_HINT = re.compile(r"^ *Hint: S(et `?torch\..*?)\.?$", re.MULTILINE)


def proposed_setting(reason: str) -> str:
    """What torch's text of a graph break proposes to set, and what for; empty: no setting.

    Example: "set <setting>.allow_rnn=True to enable experimental support for RNN, GRU, and LSTM in Dynamo".
    """
    hint = _HINT.search(reason)
    return f"s{hint[1]}" if hint else ""
