"""Functions that Triton compiles, and what it hands to its compiler for one of them."""

from __future__ import annotations
