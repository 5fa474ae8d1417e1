"""One trial of `tracing minify` in a new Python process, for a machine with a GPU."""

from __future__ import annotations

import sys

import msgspec

from tracing.cli.narrow.minify.question import Question
from tracing.cli.narrow.minify.trials import Job, done
from tracing.compiler.child import respond


def main() -> None:
    """Execute the candidate that the first argument describes, and send the result through the pipe."""
    question, job, folder = msgspec.json.decode(sys.argv[1], type=tuple[Question, Job, str])
    respond(lambda: done(question.graphs(), job, folder), int(sys.argv[2]))


if __name__ == "__main__":
    main()
