"""A training script as people have it: no case, arguments of its own, a step of an optimizer an iteration."""

import sys

import torch

steps = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 2
rate = float(sys.argv[sys.argv.index("--rate") + 1]) if "--rate" in sys.argv else 0.1
device = "cuda" if "--cuda" in sys.argv else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
compiled = torch.compile(model)
x = torch.randn(32, 8, device=device)

if __name__ == "__main__":
    for step in range(steps):
        optimizer.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.5f}")
