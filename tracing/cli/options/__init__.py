"""Options that several commands share: help, defaults, and conversion to values."""
