"""Conversions to and from transformers that tests make, and tiny models of both families."""

import json

from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64}
TINY_ALBERT = {"vocab_size": 30, "embedding_size": 8, "num_hidden_layers": 3, **SIZES}
TINY_BERT = {"vocab_size": 30, "num_hidden_layers": 2, **SIZES}


def to_ours(source, target, **options):
    return convert_checkpoint("huggingface", "albert_tf", str(source), str(target), ReadOptions(**options))


def to_theirs(source, target, **options):
    return convert_checkpoint("albert_tf", "huggingface", str(source), str(target), ReadOptions(**options))


def edit_config(folder, **changes):
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


def randomized(model):
    """Gives a torch model weights far from those that it begins with, and returns it."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.3)
    return model.eval()
