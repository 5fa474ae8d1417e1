"""List recorded runs, their kernels and passes as JSON, for the quick picks of VSCode.

    python -m vscode.recorded run | kernel RUN | pass RUN KERNEL | kernel-name RUN | pass-name RUN KERNEL

`kernel` and `pass` distinguish those of one name, as "softmax#2"; a glob is matched with the names.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from tracing import store
from tracing.analyze.passes.compilations import compilation, compilations, label
from tracing.analyze.passes.pass_table import passes_of
from tracing.errors import Problem

RUNS = Path(__file__).resolve().parents[1] / "runs"


def main() -> int:
    what, *words = sys.argv[1:]
    named, kernel = [*words, "", ""][:2]
    try:
        print(json.dumps(choices(what, named or "latest", kernel)))
    except Problem as problem:
        print(f"{problem.problem}\n  {problem.remedy}", file=sys.stderr)
        return 2
    return 0


def choices(what: str, named: str, kernel: str) -> list[dict[str, str]]:
    """What can be chosen: a label and a description each. Raises Problem without such a run or kernel."""
    if what == "run":
        return [{"label": path.name, "description": ""} for path in reversed(store.recorded(RUNS))]
    run = store.open_run(named, RUNS)
    known = compilations(run)
    if what == "kernel":
        return [{"label": label(known, one), "description": one.target} for one in known]
    if what == "kernel-name":
        return [
            {"label": name, "description": ""} for name in dict.fromkeys(one.kernel_name for one in known)
        ]
    one = next((one for one in known if one.kernel_name == kernel), None) or compilation(run, kernel or None)
    passes = passes_of(run, one)
    if what == "pass-name":
        stages = {each.name: each.stage for each in reversed(passes)}
        return [{"label": name, "description": stage} for name, stage in reversed(stages.items())]
    counted, seen = Counter(each.name for each in passes), Counter[str]()
    listed = []
    for each in passes:
        seen[each.name] += 1
        name = each.name if counted[each.name] == 1 else f"{each.name}#{seen[each.name]}"
        listed.append({"label": name, "description": each.stage})
    return listed


if __name__ == "__main__":
    sys.exit(main())
