"""The model's hyper-parameters, read from and written to the original ALBERT's JSON files."""

import dataclasses
import json
import os
import sys
import typing

from albert_tf.base.errors import InputError, listed, quote, shorten
from albert_tf.base.files import read_json

# The families of encoders by their names in a config: how a card begins, and the class that converts their models.
#
# A new one is a file with a subclass of `albert_tf.interchange.families.family.Family`, and a line here.


class Registered(typing.NamedTuple):
    """A family that `model_type` stands for."""

    title: str  # a model of it, in cards
    converter: str  # its subclass of `Family`, imported when a model is converted


_CONVERTERS = "albert_tf.interchange.families"
FAMILIES = {
    "albert": Registered("An ALBERT", f"{_CONVERTERS}.bert.Albert"),
    "bert": Registered("A BERT", f"{_CONVERTERS}.bert.Bert"),
    "roberta": Registered("A RoBERTa", f"{_CONVERTERS}.bert.Roberta"),
    "electra": Registered("An ELECTRA", f"{_CONVERTERS}.bert.Electra"),
    "distilbert": Registered("A DistilBERT", f"{_CONVERTERS}.bert.DistilBert"),
    "gpt2": Registered("A GPT-2", f"{_CONVERTERS}.gpt2.Gpt2"),
    "xlm-roberta": Registered("An XLM-RoBERTa", f"{_CONVERTERS}.bert.XlmRoberta"),
    "xlm": Registered("An XLM", f"{_CONVERTERS}.xlm.Xlm"),
    "deberta-v2": Registered("A DeBERTa", f"{_CONVERTERS}.deberta.DebertaV2"),
}


POOLING_CHOICES = ("first", "mean", "last", "aligned")
QUESTION_ALIGNMENT_CHOICES = ("none", "words")

_CHOICES = "choices"  # of a field

# Keys that the original's released JSON files carry and its code never uses (original modeling.py).
UNUSED_ORIGINAL_KEYS = frozenset(
    ["down_scale_factor", "net_structure_type", "gap_size", "num_memory_blocks", "layers_to_keep"]
)


def _one_of(choices, default):
    """Returns the field of a key that has one of a few values."""
    return dataclasses.field(default=default, metadata={_CHOICES: choices})


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Hyper-parameters of an ALBERT model, with the original's JSON keys and its xxlarge defaults.

    Attributes:
        vocab_size: Number of tokens, V.
        embedding_size: Width of the factorised embedding, E. Equal to `hidden_size`, it needs no projection.
        hidden_size: Width of the encoder, H.
        num_hidden_layers: How often a block is applied, L.
        num_hidden_groups: Number of parameter groups; layer l uses group floor(l / L * groups).
        inner_group_num: Number of distinct blocks applied one after the other inside a layer.
        num_attention_heads: Attention heads; must divide `hidden_size`.
        intermediate_size: Width of the feed-forward layer, I.
        hidden_act: "gelu" and "gelu_new" (both the tanh approximation, as in the original), "gelu_erf" (GELU itself,
            PyTorch's default), "relu", "tanh", "linear".
        hidden_dropout_prob: Dropout after embeddings and after each sub-layer.
        attention_probs_dropout_prob: Dropout on attention probabilities.
        classifier_dropout_prob: Dropout before a fine-tuning head (0.1 in every run of the paper, Table 14).
        max_position_embeddings: Rows of the table of positions, P; with `position_offset` 0, the longest sequence.
        type_vocab_size: Number of segment types, T. With 1 every token has the only row; with 0 there is no table.
        initializer_range: Standard deviation of the truncated normal that initialises weights.
        layer_norm_eps: Epsilon of every LayerNorm.
        sharing: What the layers of a group share: "all", "attention", "ffn" or "none" (paper, Table 4).
        position_initializer: How position embeddings begin: "normal", as the other weights, or "sinusoidal", from which
            small models learn faster (`sinusoidal_positions`).
        attention_initializer: How attention begins: "normal", as the other weights, or "neighbors", heads that look at
            the tokens before and after (`NeighborAttention`). Needs "sinusoidal".
        classifier_pooling: What the label of a whole text is read from: "first", the state of [CLS] by way of the
            pooler, as in the original; "mean", the average of all states, for models whose pre-training had no pairs of
            segments and taught [CLS] nothing; "last", the state of the last [SEP], in a causal model the only one that
            has seen all of the text; or for pairs of texts "aligned", a comparison of each token with its likeness in
            the other text (`AlignedPairHead`).
        question_alignment: "words" tells models that answer questions, for each token of a text, the similar words of
            the question (`QuestionAlignment`); "none" as in the original.
        is_causal: Whether a token sees none that comes after it, as in GPT (Radford et al. 2018).
        character_ngrams: Whether models that tag words also read the characters around each word's ends
            (`CharacterTagHead`).
        model_type: The family under whose names the model is converted to transformers; nothing else depends on it.
            "albert" is ALBERT, and BERT where layers share nothing and E is H.
        position_offset: Position of the first token. More than 0, it is that of [PAD] and 1 more, as in RoBERTa (Liu et
            al. 2019): positions count the tokens that are not [PAD], and [PAD] has the one before.
        pooler: Whether the encoder has a pooler. Without one there is no `pooled_output`, and no sentence order.
        classification_head: What reads the label of a whole text with `classifier_pooling=first`: "pooled", a layer on
            the pooler's output; or, on the state of [CLS], a dense layer with an activation and another layer:
            "dense_tanh" (RoBERTa), "dense_gelu" (ELECTRA), "dense_relu" (DistilBERT).
        norm_position: Where LayerNorms stand: "post", after each sub-layer and after the embeddings, as in BERT; or
            "pre", before each sub-layer and after the last block, as in GPT-2 (Radford et al. 2019, section 2.3). As
            there, "pre" makes the weights that add to a block's input begin smaller, by 1 / sqrt(2 L) of L applications
            of blocks.
        language_model_head: What scores tokens with the table of embeddings: "dense", a layer with LayerNorm before it,
            and a bias, as in BERT; "tied", the table alone, as in GPT; or "tied_bias", the table and a bias, as in XLM.
            The last two need E to be H.
        num_languages: Rows of a table of languages, of which each token has one added, as in XLM (Conneau and Lample
            2019); 0 for no table. By default tokens are of language 0, the first.
        relative_attention: What scores add for the distance of two tokens, as in DeBERTa (He et al. 2021): "c2p", the
            query's product with a key of the distance; "p2c", the key's product with a query of the distance;
            "p2c|c2p", both; or "none".
        position_buckets: Embeddings of distances to either side: one each for the nearer half, and for further
            distances one for all between two steps of their logarithm, as in DeBERTa-v2. An even number, or 0 for one
            each.
        max_relative_positions: The distance from which on all have one embedding; 0 for `max_position_embeddings`.
        share_att_key: Whether queries and keys of distances come from the same layers as those of tokens.
        norm_rel_ebd: What is applied to embeddings of distances: "layer_norm" or "none".
        position_biased_input: Whether position embeddings are added to those of tokens; only `relative_attention` needs
            none.
        num_entities: Entities whose vectors are added where a text mentions them (`EntityFusion`); 0 for none.
        entity_size: Width of such a vector.
        entity_layer: Number of applications of blocks before they are added, fewer than there are.
        entity_name_edges: Edges of the trie of tokens that finds their names. `run_pretraining.py` sets this and the
            next two from a folder of vectors and the vocabulary.
        entity_name_collisions: Most of these edges that have one hash.
        entity_name_length: Tokens of the longest name.

    Raises:
        InputError: A value is out of range or two values do not go together.
    """

    vocab_size: int
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    hidden_act: str = _one_of(("gelu", "gelu_new", "gelu_erf", "relu", "tanh", "linear"), "gelu")
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    sharing: str = _one_of(("all", "attention", "ffn", "none"), "all")
    position_initializer: str = _one_of(("normal", "sinusoidal"), "normal")
    attention_initializer: str = _one_of(("normal", "neighbors"), "normal")
    classifier_pooling: str = _one_of(POOLING_CHOICES, "first")
    question_alignment: str = _one_of(QUESTION_ALIGNMENT_CHOICES, "none")
    # Keys from here on came later. A default is not written, so that files of models without them stay as they were.
    is_causal: bool = False
    character_ngrams: bool = False
    model_type: str = _one_of(FAMILIES.keys(), "albert")  # a view, as families may be added
    position_offset: int = 0
    pooler: bool = True
    classification_head: str = _one_of(("pooled", "dense_tanh", "dense_gelu", "dense_relu"), "pooled")
    norm_position: str = _one_of(("post", "pre"), "post")
    language_model_head: str = _one_of(("dense", "tied", "tied_bias"), "dense")
    num_languages: int = 0
    relative_attention: str = _one_of(("none", "c2p", "p2c", "p2c|c2p"), "none")
    position_buckets: int = 0
    max_relative_positions: int = 0
    share_att_key: bool = False
    norm_rel_ebd: str = _one_of(("none", "layer_norm"), "none")
    position_biased_input: bool = True
    num_entities: int = 0
    entity_size: int = 0
    entity_layer: int = 0
    entity_name_edges: int = 0
    entity_name_collisions: int = 0
    entity_name_length: int = 0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            _check_type(field, getattr(self, field.name))
        for field in dataclasses.fields(self):
            if field.type is float:  # JSON may hold 0 for 0.0
                object.__setattr__(self, field.name, float(getattr(self, field.name)))
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(f"{name} must be at least 0 and less than 1. Received: {getattr(self, name)}")
        for name in ("initializer_range", "layer_norm_eps"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} must be greater than 0. Received: {getattr(self, name)}")
        if self.hidden_size % self.num_attention_heads:
            self._refuse("hidden_size must be a multiple of num_attention_heads", "hidden_size", "num_attention_heads")
        if self.num_hidden_groups > self.num_hidden_layers:
            groups, layers = "num_hidden_groups", "num_hidden_layers"
            self._refuse(f"{groups} must not exceed {layers}", groups, layers)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            choices = [choice for choice in field.metadata.get(_CHOICES, ()) if choice != "bert"]  # which is "albert"
            if choices and value not in choices:
                raise InputError(f"{field.name} must be one of {', '.join(choices)}. Received: {shorten(value)}")
        if self.attention_initializer == "neighbors" and self.position_initializer != "sinusoidal":
            needed = "attention_initializer=neighbors needs position_initializer=sinusoidal"
            self._refuse(needed, "position_initializer")
        if self.language_model_head != "dense" and self.embedding_size != self.hidden_size:
            needed = f"language_model_head={self.language_model_head} needs embedding_size to be hidden_size"
            self._refuse(needed, "embedding_size", "hidden_size")
        if self.position_offset >= self.max_position_embeddings:
            rows, offset = "max_position_embeddings", "position_offset"
            self._refuse(f"{rows} must be more than {offset}", rows, offset)
        self._check_distances()
        self._check_entities()

    def _refuse(self, what, *names):
        received = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        raise InputError(f"{what}. Received: {received}")

    def _check_distances(self):
        if self.relative_attention == "none":
            for name in _OF_DISTANCES:
                if getattr(self, name) != _DEFAULTS[name]:
                    value = json.dumps(getattr(self, name))
                    raise InputError(f"{name}={value} needs relative_attention. Received: relative_attention=none")
            return
        if self.is_causal:
            raise InputError(
                f"relative_attention={self.relative_attention} needs is_causal=false: keys and queries of distances "
                "are not kept while a text is generated"
            )
        if self.attention_initializer == "neighbors" and not self.position_biased_input:
            raise InputError(
                "attention_initializer=neighbors finds neighbours by the positions that are added to pieces. "
                "Received: position_biased_input=false"
            )
        if self.position_buckets % 2 or self.position_buckets >= 2 * (self.longest_distance - 1):
            raise InputError(
                "position_buckets must be even, and its half less than max_relative_positions - 1. Received: "
                f"position_buckets={self.position_buckets}, max_relative_positions={self.longest_distance}"
            )

    def _check_entities(self):
        for name in _OF_ENTITIES:
            value = getattr(self, name)
            if bool(value) != bool(self.num_entities) and (value or name != "entity_layer"):
                raise InputError(f"num_entities={self.num_entities} does not match {name}={value}; set both or neither")
        if self.num_entities and self.entity_layer >= self.num_blocks:
            raise InputError(
                f"entity_layer must be less than the number of blocks. Received: entity_layer={self.entity_layer}, and "
                f"{self.num_blocks} blocks"
            )
        if self.num_entities and self.is_causal:
            raise InputError(
                f"num_entities={self.num_entities} needs is_causal=false: an entity is found from all pieces of its "
                "name, so the first of them would see what comes next"
            )

    @classmethod
    def from_dict(cls, values: dict[str, typing.Any]) -> "AlbertConfig":
        """Builds a config from the keys of an original JSON file.

        Raises:
            InputError: A key is unknown, `vocab_size` is missing, or a value is wrong.
        """
        unknown = sorted(values.keys() - _NAMES - UNUSED_ORIGINAL_KEYS)
        if unknown:
            raise InputError(f"unknown key(s) {listed(unknown)}; known keys are {', '.join(sorted(_NAMES))}")
        if "vocab_size" not in values:
            raise InputError("the key vocab_size is missing; set it to the number of lines of the vocabulary")
        return cls(**{name: value for name, value in values.items() if name in _NAMES})

    @classmethod
    def from_json_file(cls, path: str | os.PathLike) -> "AlbertConfig":
        """Reads a config; every error names the file.

        Raises:
            InputError: The file is missing, is not a JSON object, or holds a wrong key or value.
        """
        values = read_json(path, "the model config")
        try:
            config = cls.from_dict(values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        if "embedding_size" not in values:  # Google's bert_config.json, which would be read as an ALBERT
            raise InputError(
                f"{path}: the key embedding_size is missing; set it to 128 for an ALBERT, or for a BERT to "
                "hidden_size, with sharing=none"
            )
        return config

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns the fields, ready for `from_dict`; of those that came after the original's, only changed ones."""
        values = dataclasses.asdict(self)
        return {key: value for key, value in values.items() if key not in _LATER_KEYS or value != _DEFAULTS[key]}

    @property
    def num_blocks(self) -> int:
        """Number of applications of blocks, those inside of a layer counted one by one."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def longest_distance(self) -> int:
        """The distance of two tokens from which on all have one embedding."""
        return self.max_relative_positions or self.max_position_embeddings

    @property
    def longest_sequence(self) -> int:
        """The number of tokens that there are positions for."""
        return self.max_position_embeddings - self.position_offset

    def check_max_seq_length(self, max_seq_length: int, source: str = "max_seq_length") -> None:
        """Checks that there are embeddings for the positions of a sequence.

        Args:
            max_seq_length: Its length.
            source: The setting that gives the length, such as "`max_seq_length`"; named in errors.

        Raises:
            InputError: It is longer than `longest_sequence`.
        """
        if max_seq_length > self.longest_sequence:
            less = f" less its position_offset, {self.position_offset}" if self.position_offset else ""
            raise InputError(
                f"{source}={max_seq_length} is more than the model's max_position_embeddings, "
                f"{self.max_position_embeddings}{less}; make sequences shorter, or raise it in `albert_config_file`"
            )

    def check_vocab_size(self, num_pieces: int, source: str) -> None:
        """Checks that a vocabulary of `num_pieces` fits the model; an InputError names its `source`."""
        if self.vocab_size != num_pieces:
            raise InputError(
                f"vocab_size in `albert_config_file` is {self.vocab_size}, but {source} has {num_pieces} pieces; make "
                "them equal"
            )

    def check_vocabulary(self, vocabulary: typing.Any) -> None:
        """Checks that a `Vocabulary` is of the model's size, and has [PAD] where the model counts positions by it."""
        source = vocabulary.source
        self.check_vocab_size(len(vocabulary), source)
        pad_id = vocabulary.id_of("[PAD]") if "[PAD]" in vocabulary else None
        if self.position_offset and pad_id != self.position_offset - 1:
            raise InputError(
                f"[PAD] has the id {pad_id} in {source}, but position_offset={self.position_offset} needs it to "
                f"be {self.position_offset - 1}, because positions are counted from it; use the vocabulary of "
                "the model"
            )

    def replace(self, **changes) -> "AlbertConfig":
        """Returns a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


_NAMES = [field.name for field in dataclasses.fields(AlbertConfig)]
_DEFAULTS = {field.name: field.default for field in dataclasses.fields(AlbertConfig)}
_LATER_KEYS = _NAMES[_NAMES.index("is_causal") :]
# Keys that say something of entities, and how distances between pieces are told apart.
_OF_ENTITIES = [name for name in _NAMES if name.startswith("entity_")]
_OF_DISTANCES = _NAMES[_NAMES.index("position_buckets") : _NAMES.index("num_entities")]


def _check_type(field, value):
    name, expected = field.name, field.type
    # Where 0 is no default, but for segment types, there must be one of the things that are counted.
    least = 0 if field.default == 0 or name == "type_vocab_size" else 1
    is_number = isinstance(value, int if expected is int else int | float) and not isinstance(value, bool)
    if expected is int and not (is_number and value >= least):
        raise InputError(f"{name} must be a whole number of at least {least}. Received: {quote(value)}")
    if expected is float and not is_number:
        raise InputError(f"{name} must be a number. Received: {quote(value)}")
    if expected is float and abs(value) > sys.float_info.max:  # JSON's whole numbers have no largest one
        raise InputError(f"{name} must be a number that fits into 64 bits")
    if expected is bool and not isinstance(value, bool):
        raise InputError(f"{name} must be true or false. Received: {quote(value)}")
    if expected is str and not isinstance(value, str):
        raise InputError(f"{name} must be a string. Received: {quote(value)}")
