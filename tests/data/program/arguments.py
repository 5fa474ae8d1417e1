"""A program that shows what Python gives it; run it by -m."""

from __future__ import annotations

import argparse
import os
import sys

from .numbers import FIRST

parser = argparse.ArgumentParser()
parser.add_argument("--status", type=int, default=0)
options = parser.parse_args()
print(__name__, __package__, __spec__.name if __spec__ else None, sys.argv[1:], sys.path[0] == os.getcwd())  # noqa: PTH109
print(sys.orig_argv[1:], sys.modules["__main__"].FIRST == FIRST, sys.stdin.read().upper())
sys.exit(options.status)
