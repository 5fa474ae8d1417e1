"""Parse options that list backends of torch.compile."""

from __future__ import annotations

from tracing.cli.app import spinner
from tracing.errors import Problem


def known_backends_of(text: str) -> list[str]:
    """The backends of a comma-separated list, the reference first; raises Problem if torch lacks one.

    "mock" is mock_backend, unless a backend of that name is registered; likewise "aot_mock".
    """
    names = [one.strip() for one in text.split(",") if one.strip()]
    if len(names) < 2:
        problem = f"--backends is {text!r}, one backend" if names else "--backends names no backend"
        raise Problem(problem, "name a reference and another one: eager,inductor")
    with spinner("importing torch"):
        from tracing.numerics.kernel_diff import known_backends

        known = known_backends()
    names = [f"{one}_backend" if one not in known and f"{one}_backend" in known else one for one in names]
    unknown = [one for one in names if one not in known]
    if unknown:
        raise Problem(f"there is no backend {unknown[0]!r}", f"these are known: {', '.join(known)}")
    return names
