"""ResNet-18 with random weights, without torchvision: convolutions, batch norm, residuals.

Options: small = true for 0.1 million parameters instead of 11.7; batch; size of the square images; backward.
"""

import torch
from torch import nn

from tracing import Workload


class Block(nn.Module):
    """Two convolutions and the residual connection around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    """A stem, four stages that halve the image, and a classifier.

    width  -- channels of the first stage; each further stage doubles them
    blocks -- of each stage
    """

    def __init__(self, width: int, blocks: int, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        stages = []
        inputs = width
        for stage in range(4):
            outputs = width << stage
            for block in range(blocks):
                stages.append(Block(inputs, outputs, 2 if stage and not block else 1))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.stages(self.stem(x)).mean((2, 3)))


def build(
    device: str, small: bool = False, batch: int = 1, size: int = 0, backward: bool = False
) -> Workload:
    model = ResNet(8, 1, classes=10) if small else ResNet(64, 2)
    model = model.to(device).train(backward).requires_grad_(backward)
    size = size or (64 if small else 224)
    return Workload(model, (torch.rand(batch, 3, size, size, device=device),), backward=backward)
