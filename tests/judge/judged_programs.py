"""Small programs of every kind that Inductor compiles differently."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from planted_kernels import Program


def values(*shape: int, dt: torch.dtype = torch.float32, g: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(g)).to(dt)


class Convolution(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.c = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.b = torch.nn.BatchNorm2d(8)
        self.c2 = torch.nn.Conv2d(8, 4, 1)

    def forward(self, x):
        return self.c2(F.relu(self.b(self.c(x)))).mean((2, 3))


class Embedded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.e = torch.nn.Embedding(50, 16)
        self.n = torch.nn.LayerNorm(16)
        self.l = torch.nn.Linear(16, 50)

    def forward(self, i):
        return F.cross_entropy(self.l(self.n(self.e(i))).view(-1, 50), i.view(-1))


class Attention(torch.nn.Module):
    def __init__(self, dt):
        super().__init__()
        torch.manual_seed(0)
        self.q = torch.nn.Linear(32, 96)
        self.o = torch.nn.Linear(32, 32)
        self.n = torch.nn.LayerNorm(32)
        self.to(dt)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.q(self.n(x)).view(B, T, 3, 4, 8).permute(2, 0, 3, 1, 4)
        a = (
            (q @ k.transpose(-1, -2) / 8**0.5)
            .masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
            .softmax(-1)
        )
        return x + self.o((a @ v).transpose(1, 2).reshape(B, T, C))


def changed_in_its_first_element(x):
    x[0].add_(1)
    return x


def with_a_scattered_diagonal(x):
    w = x.new_zeros(x.shape) + x.flip(0)
    w.diagonal().add_(1)
    return torch.cat([w[:1], w[1:] + 1])


def largest_of_edges(x, w, source, target):
    scores = (x[source] * w[:4]).sum(-1) + (x[target] * w[4:]).sum(-1)
    largest = torch.full((6,), -1e9, device=x.device).scatter_reduce(0, target, scores, "amax")
    return (scores - largest[target]).exp()


def mutate(x, y):
    x.add_(y)
    y[1:3].mul_(2)
    return x.sin() + y


def mutate_views(x, y):
    x.transpose(0, 1)[2:5] += y[:3]
    x.fill_diagonal_(0.25)
    y.t().mul_(3)
    return x.cos(), y.diagonal() + 1


def views(x):
    y = x * 2 + 1
    return y.t(), y[1:], y.view(-1), x.view(-1)


def breaks(x):
    y = x.sin() * 2
    torch._dynamo.graph_break()
    z = (y + 1).softmax(-1)
    torch._dynamo.graph_break()
    return (z * y).sum(0)


def kv(cache, x):
    cache[:, 2:3].copy_(x * 2)
    return cache.sum(1) + 1


def scat(x, i, v):
    return x.index_put((i,), v, accumulate=True) + 1, torch.scatter_add(
        x, 0, i[:, None].expand(-1, x.shape[1]), v
    ).relu()


def rand(x):
    return F.dropout(x * 2, 0.3) + torch.rand_like(x), torch.randn(8) * 2


def reinplaced(x, source):
    y = torch.slice_scatter(x, source[1:3], 0, 1, 3)
    x.zero_()
    return y, (x + y).exp()


PROGRAMS: dict[str, Program] = {
    "softmax": Program(lambda x: (x * 3).softmax(-1), lambda: (values(33, 70),)),
    "bf16 norm": Program(
        lambda x, w: F.layer_norm(x, (64,), w, w) * 2 + x,
        lambda: (values(30, 64, dt=torch.bfloat16), values(64, g=1, dt=torch.bfloat16)),
    ),
    "fp16 gelu": Program(lambda x: F.gelu(x).float().sum(-1), lambda: (values(30, 64, dt=torch.float16),)),
    "split": Program(lambda x: (x * x).sum() + x.mean(), lambda: (values(70000),)),
    "split var": Program(lambda x: x.var() + x.amax() + x.std(), lambda: (values(256, 1024),)),
    "conv": Program(
        Convolution(), lambda: (values(2, 3, 16, 16).to(memory_format=torch.channels_last),), backward=True
    ),
    "emb": Program(
        Embedded(),
        lambda: (torch.randint(0, 50, (4, 9), generator=torch.Generator().manual_seed(1)),),
        backward=True,
    ),
    "att bf16": Program(
        Attention(torch.bfloat16), lambda: (values(2, 8, 32, dt=torch.bfloat16),), backward=True
    ),
    "att": Program(Attention(torch.float32), lambda: (values(2, 8, 32),), backward=True),
    "transposed in place": Program(
        lambda a, b, c: (a @ b).t() + c.t().sin(),
        lambda: (values(8, 8), values(8, 8, g=1), values(8, 8, g=2)),
    ),
    "copied before it is scattered into": Program(with_a_scattered_diagonal, lambda: (values(4, 4, 8),)),
    "view changed in place": Program(
        lambda x: torch.diag_embed(changed_in_its_first_element(x * 1)), lambda: (values(8),), backward=True
    ),
    "stacked for a product": Program(
        lambda x, y: torch.bmm(torch.stack([x, y.relu()]), torch.stack([x, y]).mT) + 1,
        lambda: (values(8, 8), values(8, 8, g=1)),
    ),
    "mutate": Program(mutate, lambda: (values(8, 8), values(8, 8, g=1))),
    "mutate views": Program(mutate_views, lambda: (values(7, 7), values(7, 7, g=1))),
    "views": Program(views, lambda: (values(6, 6),)),
    "breaks": Program(breaks, lambda: (values(12, 20),)),
    "kv": Program(kv, lambda: (values(4, 6, 8), values(4, 1, 8, g=1))),
    "scatter": Program(
        scat,
        lambda: (
            values(9, 5),
            torch.randint(0, 9, (30,), generator=torch.Generator().manual_seed(2)),
            values(30, 5, g=1),
        ),
    ),
    "scatters": Program(
        lambda x, i, a, b: torch.zeros_like(x).index_add(0, i, a.sin()).index_add(0, i, b),
        lambda: (
            values(9, 5),
            torch.randint(0, 9, (30,), generator=torch.Generator().manual_seed(2)),
            values(30, 5, g=1),
            values(30, 5, g=2),
        ),
    ),
    "largest of edges": Program(
        largest_of_edges,
        lambda: (values(6, 4), values(8, g=1), torch.arange(20) * 7 % 6, torch.arange(20) % 6),
        backward=True,
    ),
    "random": Program(rand, lambda: (values(40, 20),), calls=2),
    "dropout bw": Program(
        lambda x: F.dropout(x.sin(), 0.4) * x, lambda: (values(40, 20).requires_grad_(),), backward=True
    ),
    "dynamic": Program(
        lambda x: (x.softmax(-1) * x.shape[0]).sum(0) + x.cumsum(0),
        lambda: (values(17, 24),),
        dynamic=True,
        calls=2,
    ),
    "cat": Program(
        lambda x, y: torch.cat([x.sin(), y * 2, x @ y.t()], -1).relu(),
        lambda: (values(10, 10), values(10, 10, g=1)),
    ),
    "int": Program(lambda i: (i * 3 + 7) // 2 % 5, lambda: (torch.arange(100),)),
    "argmax": Program(
        lambda x: (x.argmax(-1), x.topk(3).values, x.sort(-1).values.cumsum(-1)), lambda: (values(10, 30),)
    ),
    "pool": Program(
        lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2),
        lambda: (values(2, 3, 8, 8).requires_grad_(),),
        backward=True,
    ),
    "upsample": Program(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), lambda: (values(2, 3, 8, 8),)
    ),
    "where nan": Program(lambda x: (x.log() + x.sqrt(), x / 0), lambda: (values(8, 8),)),
    "complex": Program(lambda x: torch.view_as_real(torch.fft.fft(x) * 2) + 1, lambda: (values(8, 8),)),
    "bool": Program(
        lambda x: ((x > 0) & (x < 1), (x > 0).sum(-1), x[x.abs() > 9e9].sum()), lambda: (values(8, 8),)
    ),
    "adam": Program(
        lambda p, g, m, v: (
            (
                m.mul_(0.9).add_(g, alpha=0.1),
                v.mul_(0.99).addcmul_(g, g, value=0.01),
                p.sub_(m / (v.sqrt() + 1e-8), alpha=0.01),
            )[2]
            * 1
        ),
        lambda: (values(30), values(30, g=1), values(30, g=2), values(30, g=3).abs()),
        calls=2,
    ),
    "slice_scatter": Program(
        lambda x, s: (torch.slice_scatter(x, s, 0, 1, 3) * 2, torch.select_scatter(x, s[0], 0, 2)),
        lambda: (values(4, 6), values(2, 6, g=1)),
    ),
    "diag": Program(
        lambda x: (torch.diagonal_scatter(x, x.diagonal() * 2), x.tril(), torch.eye(6) + x),
        lambda: (values(6, 6),),
    ),
    "pad": Program(lambda x: F.pad(x, (1, 2, 0, 3)).roll(1, 0)[::2].flip(-1), lambda: (values(6, 6),)),
    "wide": Program(
        lambda x: (x.double() * 1.1).sum(-1).float() + x.long().float().mean(), lambda: (values(20, 30) * 9,)
    ),
}
