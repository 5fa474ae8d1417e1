"""Plants a fault into Triton's compiler: a sitecustomize for PYTHONPATH, active in every process.

FAULT names what is wrong, as JSON:

    {"pass": "canonicalize", "edit": [["arith.maxnumf", "arith.minnumf"]]}

After every run of that pass, in every process and pipeline, the IR is edited in place: each pair is a regular
expression and its replacement; {"first": true} edits only its first match.

    {"pass": "tritongpu-pipeline", "die": "abort", "if": "ttg.async_wait"}

dies ("abort", "hang", "error") before a run of the pass on IR that has a match.

A pass of LLVM is made faulty by `faulty_llvm.c`, ptxas by `ptxas`.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import json
import os
import re
import sys
import tempfile
import time

FAULT = json.loads(os.environ.get("FAULT", "{}"))


def faulty(libtriton):
    ir = libtriton.ir

    class Faulty(ir.pass_manager):
        def __init__(self, context):
            super().__init__(context)
            self.of_context = context

        def run(self, module, tag):
            names = re.findall(r"[\w-]+(?=[{,)]|$)", re.sub(r"\{[^}]*\}", "", self.get_pipeline_str()))
            is_it = FAULT["pass"] in names
            if is_it and "die" in FAULT and re.search(FAULT["if"], module.str_nodebug()):
                die(FAULT["die"])
            super().run(module, tag)
            if is_it and "edit" in FAULT:
                assert len(names) == 1, names  # a pipeline that runs whole hides where the fault is
                edit(module, self.of_context)

    def edit(module, context):
        text = new = module.str()
        for pattern, replacement in FAULT["edit"]:
            new = re.sub(pattern, replacement, new, count=int(FAULT.get("first", False)))
        if new != text:
            with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
                file.write(new)
                file.flush()
                replace(module, ir.parse_mlir_module(file.name, context))

    def replace(module, other):
        # the content of a module, in place: whoever holds the module sees it
        from tracing.compiler.symbols import function  # both import libtriton
        from tracing.upstream.triton.libtriton import pointer_of

        old, new, pointer = top(module), top(other), ctypes.c_void_p
        erase = function("_ZN4mlir9Operation5eraseEv", None, pointer)
        dictionary = function("_ZN4mlir9Operation17getAttrDictionaryEv", pointer, pointer)
        attributes = function("_ZN4mlir9Operation8setAttrsENS_14DictionaryAttrE", None, pointer, pointer)
        attributes(pointer_of(module.get_operation()), dictionary(pointer_of(other.get_operation())))
        new[0].get_block().merge_block_before(old[0].get_block())
        for one in old:
            erase(pointer_of(one))

    def top(module):
        operations = []
        module.walk(operations.append)
        operations.pop()  # the module itself
        block = operations[-1].get_block().id()
        return [one for one in operations if one.get_block().id() == block]

    ir.pass_manager = Faulty


def die(how):
    if how == "abort":
        os.write(2, b'Faulty.cpp:12: void run(): Assertion `layout && "no layout"\' failed.\n')
        os.abort()
    if how == "hang":
        time.sleep(1000)
    os.write(2, b'loc("x.py":3:4): error: operation has no layout\n')
    raise RuntimeError("PassManager::run failed")


class Finder:
    """Finds libtriton, and makes it faulty when it is loaded."""

    @staticmethod
    def find_spec(name, path, target=None):
        if name != "triton._C.libtriton":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            faulty(module)

        spec.loader.exec_module = exec_module
        return spec


if "pass" in FAULT:
    sys.meta_path.insert(0, Finder)
