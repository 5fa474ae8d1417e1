"""Records one run of `tracing repeat` in a new Python process.

Its arguments are a SeriesRun as JSON, and the pipe that receives the result.
"""

from __future__ import annotations

from tracing.record.repeat import program

if __name__ == "__main__":
    program()
