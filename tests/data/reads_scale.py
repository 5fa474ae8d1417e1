"""A module of the user's that a case imports."""

import os

SCALE = float(os.getenv("SCALE", "1"))
