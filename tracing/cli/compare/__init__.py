"""Commands that find where runs differ."""
