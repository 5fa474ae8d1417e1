"""BERT-base-multilingual with random weights: the architecture of `transformers`; nothing is downloaded.

Options: small = true for 0.1 million parameters instead of 178; batch, tokens; backward.
"""

import torch

from tracing import Workload
from tracing.errors import Problem


def build(
    device: str, small: bool = False, batch: int = 1, tokens: int = 0, backward: bool = False
) -> Workload:
    try:
        from transformers import BertConfig, BertModel
    except ImportError as error:
        raise Problem(
            f"the case bert needs the package transformers: {error}", "pip install transformers"
        ) from None
    sizes = {"vocab_size": 119_547}  # of bert-base-multilingual-cased; the rest is BERT-base's
    if small:
        sizes = {
            "vocab_size": 1000,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 128,
            "max_position_embeddings": 64,
        }
    model = BertModel(BertConfig(**sizes)).to(device).train(backward).requires_grad_(backward)
    shape = (batch, tokens or (16 if small else 128))
    given = {
        "input_ids": torch.randint(sizes["vocab_size"], shape, device=device),
        "attention_mask": torch.ones(shape, dtype=torch.int64, device=device),
    }
    return Workload(model, kwargs=given, backward=backward)
