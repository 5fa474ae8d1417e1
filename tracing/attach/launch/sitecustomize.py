"""Enable the stop in every Python process of a program whose PYTHONPATH begins with this folder.

Python imports `sitecustomize` before anything else, and children inherit the path, so the stop reaches
Inductor's workers. The `sitecustomize` that this folder hides is imported afterwards.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.append(str(_HERE.parents[2]))  # a Python in which this project is not installed

from tracing.attach import stop  # noqa: E402  # its path is known from here on

stop.switch_on()

_hidden = PathFinder.find_spec("sitecustomize", [path for path in sys.path if Path(path) != _HERE])
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(module_from_spec(_hidden))
