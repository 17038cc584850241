"""The variables of our models, and the tables that tell their names in other people's checkpoints.

`LAYERS` lists every layer once, with its kind and sizes. A format is a `Naming`: a name for each layer, and a spelling
of the variables of each kind. Names and shapes on both sides follow from the two and a config.
"""

import dataclasses
import types
import typing

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import FinetuningTask
from albert_tf.finetuning.task import Head, Layer
from albert_tf.modeling.kernels.attention import num_distances

Task = type[FinetuningTask]

# Layer to its kind and its sizes: fields of the config, or numbers. {n} stands for the number of a block.
LAYERS: dict[str, Layer] = {
    "encoder/embeddings/word_embeddings": ("table", ("vocab_size", "embedding_size")),
    "encoder/embeddings/token_type_embeddings": ("table", ("type_vocab_size", "embedding_size")),
    "encoder/embeddings/position_embeddings": ("table", ("max_position_embeddings", "embedding_size")),
    "encoder/embeddings/language_embeddings": ("table", ("num_languages", "embedding_size")),
    "encoder/embeddings/layer_norm": ("norm", ("embedding_size",)),
    "encoder/embedding_hidden_mapping_in": ("linear", ("embedding_size", "hidden_size")),
    "encoder/attention_layers/{n}/query": ("heads", ("hidden_size", "hidden_size")),
    "encoder/attention_layers/{n}/key": ("heads", ("hidden_size", "hidden_size")),
    "encoder/attention_layers/{n}/value": ("heads", ("hidden_size", "hidden_size")),
    "encoder/attention_layers/{n}/output_dense": ("joined_heads", ("hidden_size", "hidden_size")),
    "encoder/attention_layers/{n}/layer_norm": ("norm", ("hidden_size",)),
    "encoder/feed_forward_layers/{n}/intermediate": ("linear", ("hidden_size", "intermediate_size")),
    "encoder/feed_forward_layers/{n}/output_dense": ("linear", ("intermediate_size", "hidden_size")),
    "encoder/feed_forward_layers/{n}/layer_norm": ("norm", ("hidden_size",)),
    "encoder/last_layer_norm": ("norm", ("hidden_size",)),
    "encoder/pooler": ("linear", ("hidden_size", "hidden_size")),
    "masked_lm_head/transform": ("linear", ("hidden_size", "embedding_size")),
    "masked_lm_head/layer_norm": ("norm", ("embedding_size",)),
    "masked_lm_head/output_bias": ("vector", ("vocab_size",)),
    "sentence_order_head/dense": ("output", ("hidden_size", 2)),
    "replaced_token_head/transform": ("linear", ("hidden_size", "hidden_size")),
    "replaced_token_head/dense": ("linear", ("hidden_size", 1)),
}

# Those of a model that reads distances; `block_names` counts the others alone.
_OF_DISTANCES: dict[str, Layer] = {
    "encoder/relative_embeddings/table": ("table", ("num_distances", "hidden_size")),
    "encoder/relative_embeddings/layer_norm": ("norm", ("hidden_size",)),
    "encoder/attention_layers/{n}/distances/query": ("linear", ("hidden_size", "hidden_size")),
    "encoder/attention_layers/{n}/distances/key": ("linear", ("hidden_size", "hidden_size")),
}

# The variables of a kind, by the ends of our names.
_ENDS = {"table": ("",), "vector": ("",), "norm": ("/gamma", "/beta")}
_LINEAR_ENDS = ("/kernel", "/bias")


@dataclasses.dataclass(frozen=True)
class Spelling:
    """How a format writes one of the variables of a layer."""

    end: str  # what follows the layer's name
    is_transposed: bool = False  # whether it has the rows of ours as columns
    splits_heads: int | None = None  # which axis of ours is two axes, heads and their size


@dataclasses.dataclass(frozen=True)
class Naming:
    """A format's names for our layers."""

    # Our layer to the format's. {n} is the number of a block, {number} the same as Keras writes it, {group} and {inner}
    # its group and place in it.
    layers: typing.Mapping[str, str]
    heads: typing.Mapping[Head, typing.Mapping[str, str]]  # the same for each head that the format has
    spellings: typing.Mapping[str, tuple[Spelling, ...]]  # of each kind of `LAYERS`, in the order of our variables
    always_projects: bool = False  # whether embeddings are projected to the hidden size even if they have it already


@dataclasses.dataclass(frozen=True)
class Entry:
    """One variable in a format."""

    name: str  # the format's
    shape: tuple[int, ...]  # ours
    spelling: Spelling
    num_heads: int

    @property
    def their_shape(self) -> tuple[int, ...]:
        shape = self.shape[::-1] if self.spelling.is_transposed else self.shape
        axis = self.spelling.splits_heads
        if axis is None:
            return shape
        return (*shape[:axis], self.num_heads, shape[axis] // self.num_heads, *shape[axis + 1 :])


def num_blocks(config: AlbertConfig) -> tuple[int, int]:
    """Returns the numbers of attention and of feed-forward sub-layers that have weights of their own."""
    attention = config.num_hidden_groups if config.sharing in ("all", "attention") else config.num_hidden_layers
    feed_forward = config.num_hidden_groups if config.sharing in ("all", "ffn") else config.num_hidden_layers
    return attention * config.inner_group_num, feed_forward * config.inner_group_num


def variable_shapes(config: AlbertConfig, task: Task | None = None, outputs: int = 0) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables of a pre-training model, and of a task's head, by our names.

    A number of blocks that no checkpoint has must have been refused before.
    """
    found = {entry.name: entry.shape for entry in entries(OURS, config, task, outputs).values()}
    return {name: shape for name, shape in found.items() if not name.startswith("replaced_token_head/")}


def entries(naming: Naming, config: AlbertConfig, task: Task | None = None, outputs: int = 0) -> dict[str, Entry]:
    """Returns a model's variables in a format, by our names; arguments as for `variable_shapes`."""
    kind = (task or FinetuningTask).kind
    sizes = {**vars(config), "outputs": kind.num_outputs or outputs, "twice_hidden_size": 2 * config.hidden_size}
    sizes["num_distances"] = num_distances(config)
    layers = _layers_of(config, kind.head)
    of_head = {layer: layer for layer in kind.head.layers} if naming is OURS else naming.heads.get(kind.head, {})
    names = {**naming.layers, **of_head}
    found = {}
    for layer, (kind, dimensions) in layers.items():
        if layer not in names or (layer == _PROJECTION and not projects(config) and not naming.always_projects):
            continue
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in dimensions)
        count = num_blocks(config)["feed_forward" in layer] if "{n}" in layer else 1
        for number in range(count):
            group, inner = divmod(number, config.inner_group_num)
            places = {"n": number, "group": group, "inner": inner, "number": f"_{number}" if number else ""}
            for end, spelling in zip(_ENDS.get(kind, _LINEAR_ENDS), naming.spellings[kind]):
                name = f"{names[layer].format(**places)}{spelling.end}".lstrip("/")
                our_shape = shape if end not in ("/bias",) else shape[-1:]
                found[f"{layer.format(**places)}{end}"] = Entry(name, our_shape, spelling, config.num_attention_heads)
    return found


def _layers_of(config, head):
    """Returns `LAYERS` and those of a head, without those that a model of this config lacks."""
    lacks = set() if config.type_vocab_size else {"encoder/embeddings/token_type_embeddings"}
    lacks |= set() if config.num_languages else {"encoder/embeddings/language_embeddings"}
    lacks |= set() if config.pooler else {"encoder/pooler", "sentence_order_head/dense"}
    lacks.add("encoder/last_layer_norm" if config.norm_position == "post" else "encoder/embeddings/layer_norm")
    if config.language_model_head != "dense":
        lacks |= {"masked_lm_head/transform", "masked_lm_head/layer_norm"}
    if config.language_model_head == "tied":
        lacks.add("masked_lm_head/output_bias")
    if config.classification_head == "pooled":
        lacks.add("head/transform")
    if not config.position_biased_input:
        lacks.add("encoder/embeddings/position_embeddings")
    layers = {**LAYERS, **head.layers}
    if config.relative_attention != "none":
        layers |= _OF_DISTANCES
        lacks |= set() if config.norm_rel_ebd == "layer_norm" else {"encoder/relative_embeddings/layer_norm"}
        for name, term in (("query", "p2c"), ("key", "c2p")):
            if config.share_att_key or term not in config.relative_attention:
                lacks.add(f"encoder/attention_layers/{{n}}/distances/{name}")
    return {layer: shape for layer, shape in layers.items() if layer not in lacks}


_PROJECTION = "encoder/embedding_hidden_mapping_in"


def projects(config: AlbertConfig) -> bool:
    """Whether our model projects embeddings to the hidden size."""
    return config.embedding_size != config.hidden_size


def block_names(prefix: str, *ends: str) -> dict[str, str]:
    """Returns a format's names for the layers of a block: a prefix, and an end for each in the order of `LAYERS`."""
    layers = (layer for layer in LAYERS if "{n}" in layer)
    return {layer: f"{prefix}{end}" for layer, end in zip(layers, ends, strict=True)}


def plain_spellings(**kinds: tuple[Spelling, ...]) -> typing.Mapping[str, tuple[Spelling, ...]]:
    """Returns the spellings of all kinds: those given, and where none is, our own."""
    ours = {
        **{kind: tuple(map(Spelling, ends)) for kind, ends in _ENDS.items()},
        "linear": tuple(map(Spelling, _LINEAR_ENDS)),
    }
    found = {**ours, **kinds}
    # Products with a special form are spelt like all others where nothing else is said.
    return types.MappingProxyType(dict.fromkeys(("heads", "joined_heads", "output"), found["linear"]) | found)


# Layers of every head, which it doesn't list, have their own names in it too.
OURS = Naming({layer: layer for layer in (*LAYERS, *_OF_DISTANCES)}, {}, plain_spellings())
