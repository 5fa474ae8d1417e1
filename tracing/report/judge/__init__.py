"""The judgement of a run, as lines of plain text and as JSON."""
