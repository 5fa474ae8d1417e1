"""Launches of Inductor's C++ kernels, and the roles of their arguments, inferred from the kernel's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache

from tracing.launch.cpp_kernels import CppSite, declared_roles, installed
from tracing.launch.hooks import hidden


@dataclass
class Seen:
    """A listener that keeps the arguments of every launch, before and after it."""

    sites: list[Any] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)

    def before(self, site: Any, values: Sequence[Any], stream: int, grid: Any) -> Any:
        self.sites.append(site)
        self.found.append(copied(site, values))
        return site, values

    def after(self, token: Any) -> None:
        self.left.append(copied(*token))


def copied(site: Any, values: Sequence[Any]) -> dict[str, Any]:
    copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in values]
    return dict(zip(site.names, copies, strict=True))


def scaled(x: Any) -> Any:
    return torch.sin(x) * 2


@pytest.fixture(scope="module")
def compiled() -> Callable[[Any], Any]:
    fn = torch.compile(scaled)
    fn(torch.ones(100))
    return fn


def kernel(parameters: str, body: str) -> str:
    return f'extern "C"  void  kernel({parameters})\n{{\n    {{\n{body}\n    }}\n}}\n'


# ---- which launches are seen ----


def test_every_call_of_a_kernel_compiled_before_is_recorded_with_its_values(compiled: Any) -> None:
    seen = Seen()
    x, y = torch.randn(100), torch.randn(100)
    with installed(seen):
        results = compiled(x), compiled(y)

    assert [values["in_ptr0"].tolist() for values in seen.found] == [x.tolist(), y.tolist()]
    assert [left["out_ptr0"].tolist() for left in seen.left] == [result.tolist() for result in results]
    assert seen.sites[0] is seen.sites[1]


def test_a_kernel_has_its_name_its_arguments_and_its_text(compiled: Any) -> None:
    seen = Seen()
    with installed(seen):
        compiled(torch.randn(100))

    (site,) = seen.sites
    facts = site.compiled()
    assert (site.kind, site.name, site.settled) == ("cpp", "cpp_fused_mul_sin_0", True)
    assert site.names == ["in_ptr0", "out_ptr0"]
    assert facts.declared().roles == {"in_ptr0": "in", "out_ptr0": "out"}
    assert (facts.target, len(facts.hash)) == ("cpu", 32)
    assert "void  kernel(const float* in_ptr0" in facts.artefacts["cpp"]
    assert "PyObject" not in facts.artefacts["cpp"]


def test_every_kernel_of_a_program_compiled_meanwhile_is_seen_forward_and_backward() -> None:
    mlp = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16))
    seen = Seen()
    with installed(seen):
        torch.compile(mlp)(torch.randn(4, 8)).sum().backward()

    roles = {role for site in seen.sites for role in site.compiled().declared().roles.values()}
    assert len({site.name for site in seen.sites}) >= 2
    assert len(seen.left) == len(seen.sites)
    assert "in" in roles and "out" in roles and "unknown" not in roles


def test_symbolic_sizes_are_scalars_of_the_launch() -> None:
    seen = Seen()
    with installed(seen):
        torch.compile(lambda x: x * x.shape[0], dynamic=True)(torch.ones(6, 7))

    assert {"ks0", "ks1"} < set(seen.sites[0].names)
    assert {seen.found[0]["ks0"], seen.found[0]["ks1"]} == {6, 7}
    assert seen.sites[0].scalars == [2, 3]
    assert seen.sites[0].compiled().declared().roles == {"in_ptr0": "in", "out_ptr0": "out"}


def test_a_hidden_launch_is_not_recorded(compiled: Any) -> None:
    seen = Seen()
    with installed(seen), hidden():
        compiled(torch.randn(100))

    assert seen.sites == []


def test_everything_is_restored_after_an_exception(compiled: Any) -> None:
    def state() -> list[Any]:
        scopes = [vars(module) for module in PyCodeCache.modules]
        return [scope[name] for scope in scopes for name in scope if name.startswith("cpp_")]

    before, wait = state(), AsyncCompile.wait
    with pytest.raises(KeyError), installed(Seen()):
        assert state() != before
        raise KeyError

    assert state() == before
    assert AsyncCompile.wait is wait


def test_without_its_text_a_kernel_has_numbered_arguments_of_unknown_roles() -> None:
    site = CppSite("cpp_fused_0", max, 2)

    assert site.names == ["arg0", "arg1"]
    assert site.compiled().declared().roles == {"arg0": "unknown", "arg1": "unknown"}
    assert site.compiled().artefacts == {}


# ---- roles, inferred from the text ----


def test_a_buffer_loaded_before_it_is_stored_is_read_and_written() -> None:
    source = kernel(
        "float* out_ptr0",
        "auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), 16);\n"
        "tmp0.store(out_ptr0 + static_cast<int64_t>(x0));",
    )

    assert declared_roles(source) == {"out_ptr0": "in_out"}


def test_a_buffer_stored_before_it_is_loaded_is_only_written() -> None:
    source = kernel(
        "const bool* in_ptr0,\n const int64_t ks0,\n float* out_ptr0",
        "auto tmp0 = in_ptr0[x0];\n"
        "out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp0);\n"
        "auto tmp1 = out_ptr0[static_cast<int64_t>(x0)];",
    )

    assert declared_roles(source) == {"in_ptr0": "in", "out_ptr0": "out"}


@pytest.mark.parametrize(
    "statement",
    [
        "out_ptr0[static_cast<int64_t>(tmp3)] = tmp4;",  # a scatter keeps the other elements
        "atomic_add(&out_ptr0[static_cast<int64_t>(x0)], tmp1);",
        "out_ptr0[x0] = out_ptr0[x0] + tmp1;",
        "out_ptr0[x0] += tmp1;",
        "if (tmp0) out_ptr0[x0] = tmp1;",
        "micro_gemm(tmp0, out_ptr0 + x0);",
        "transpose_mxn<float,16,16,true>(tmp1, static_cast<int64_t>(16), out_ptr0 + x0, 16L);",  # accumulates
    ],
)
def test_a_statement_that_may_keep_or_add_to_the_contents_reads_them(statement: str) -> None:
    assert declared_roles(kernel("float* out_ptr0", statement)) == {"out_ptr0": "in_out"}


@pytest.mark.parametrize(
    "statement",
    [
        "tmp1.store(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(5L));",
        "transpose_mxn<float,16,16,false>(tmp1, static_cast<int64_t>(16), out_ptr0 + x0, 16L);",
    ],
)
def test_a_plain_store_is_a_write(statement: str) -> None:
    assert declared_roles(kernel("float* out_ptr0", statement)) == {"out_ptr0": "out"}


def test_a_buffer_in_place_is_followed_under_its_second_name() -> None:
    body = "auto out_ptr0 = in_out_ptr0;\nout_ptr0[x0] = tmp0;\nauto tmp1 = in_out_ptr0[x0];"

    assert declared_roles(kernel("float* in_out_ptr0", body)) == {"in_out_ptr0": "out"}


def test_a_pointer_that_the_body_does_not_name_is_not_accessed() -> None:
    assert declared_roles(kernel("const float* in_ptr0", ";")) == {"in_ptr0": "none"}
