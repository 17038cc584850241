"""Finding what a folder holds, and loading it: model, tokenizer, and what it was trained for."""

import dataclasses
import os
import typing

import tensorflow as tf

from albert_tf.asking.answers import FILL_MASK, FIND_REPLACED
from albert_tf.base.checkpoint_files import (
    EVAL_RESULTS_FILE,
    CheckpointReader,
    only_model,
    refuse_trials,
    resolve_checkpoint,
)
from albert_tf.base.errors import InputError
from albert_tf.base.settings import check_types
from albert_tf.base.shipped_files import did_you_mean
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS, FinetuningTask
from albert_tf.finetuning.task import TEXTS_ARE_ASSUMED
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import (
    CONFIG_FILE,
    AlbertModel,
    find_checkpoint,
    load_weights,
    read_config,
    read_encoder_settings,
    read_untrained,
)
from albert_tf.modeling.replaced_tokens import AlbertForReplacedTokens
from albert_tf.objectives import make_objective, usual_objective, what_was_learnt
from albert_tf.serving.formats import find_export
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_results, read_settings

_POOLER, _MASKED_LM_HEAD, _REPLACED_TOKEN_HEAD = "encoder/pooler/", "masked_lm_head/", "replaced_token_head/"

_HEADS = {_MASKED_LM_HEAD: "guesses missing pieces", _REPLACED_TOKEN_HEAD: "finds replaced pieces"}

# What a model must have been pre-trained to do for each ability: in one of these ways, with this head, in words.
_ANY_PIECE = ("fills_masks", "predicts_next"), _MASKED_LM_HEAD, "tell how probable pieces are"
_LEARNT = {
    FILL_MASK: (("fills_masks",), _MASKED_LM_HEAD, "fill in what is missing"),
    "generate": (("predicts_next",), _MASKED_LM_HEAD, "continue texts, as with objective=causal"),
    "score": _ANY_PIECE,
    "choose": _ANY_PIECE,
    FIND_REPLACED: (("discriminates",), _REPLACED_TOKEN_HEAD, "find replaced pieces, as with objective=electra"),
}


@dataclasses.dataclass(frozen=True)
class TrainedModel:
    """A model with all that is needed to ask it.

    Attributes:
        model: With the weights of the folder's best checkpoint.
        max_seq_length: Longest input in tokens.
        task: That it was fine-tuned for; None for a pre-trained model.
        checkpoint: The path of the weights, without extension.
        results: The measures on held-out data, by name; empty where nothing was measured.
        untrained: The names of the model's variables that are as random as they began.
        fills_masks: Whether it was pre-trained to.
        predicts_next: Whether it was pre-trained to tell which token comes next.
        encoder_settings: How vectors are made, where that was taught, here or elsewhere.
        texts_are_assumed: Whether nothing told the form of its texts, so that `task` reads the usual ones.
    """

    model: AlbertModel
    tokenizer: Tokenizer
    max_seq_length: int
    task: FinetuningTask | None
    checkpoint: str
    results: dict[str, typing.Any]
    untrained: frozenset[str] = frozenset()
    fills_masks: bool = True
    predicts_next: bool = False
    texts_are_assumed: bool = False
    encoder_settings: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    def as_encoder(self) -> "TrainedModel":
        """Returns this without the task, of whose model nothing but the encoder is there and no pooler was trained."""
        return dataclasses.replace(self, task=None, fills_masks=False, untrained=frozenset([_POOLER]))

    @property
    def abilities(self) -> tuple[str, ...]:
        """The abilities of a pre-trained model, vectors aside."""
        return tuple(ability for ability in _LEARNT if self.why_not(ability) is None)

    def why_not(self, ability: str) -> str | None:
        """Returns why a pre-trained model lacks an ability, a sentence without its subject; None if it does not."""
        if ability not in _LEARNT:
            return None
        ways, head, learnt = _LEARNT[ability]
        if not any(getattr(self, way) for way in ways):
            return f"was not pre-trained to {learnt}, and so it has no {ability}"
        if self.task is not None or not self._has(head):
            return f"has no {head.rstrip('/')}, which {_HEADS[head]}"
        return None

    @property
    def pools(self) -> bool:
        """Whether it has a pooler that was trained, whose [CLS] has seen the text."""
        return self.config.pooler and not self.config.is_causal and self._has(_POOLER)

    @property
    def discriminates(self) -> bool:
        """Whether it is ELECTRA's discriminator."""
        return isinstance(self.model, AlbertForReplacedTokens)

    def _has(self, head):
        return not any(name.startswith(head) for name in self.untrained)

    @property
    def config(self) -> AlbertConfig:
        """The model's hyper-parameters."""
        return self.model.config


def holds_finetuned(folder: str | os.PathLike) -> bool:
    """Whether a folder holds a fine-tuned model, as far as its settings tell, or nothing that was pre-trained."""
    settings = read_settings(os.fspath(folder))
    if settings is not None:
        return _task_of(settings, folder) is not None
    return resolve_checkpoint(os.fspath(folder)) is None


def load_finetuned(
    folder: str | os.PathLike, source: str, tokenizer: Tokenizer | None = None, dtype: str = "float32"
) -> TrainedModel:
    """Loads the best checkpoint of a run that fine-tuned.

    Errors begin with `source`; a tokenizer is given for a folder that holds none; the dtype, a Keras policy such as
    "mixed_bfloat16", is that of products. Raises InputError if the folder holds no fine-tuned model, or another
    tokenizer than is given.
    """
    folder = os.fspath(folder)
    if not tf.io.gfile.exists(folder):
        raise InputError(f"{folder}: there is no such folder{did_you_mean(folder) or '; name the folder of a model'}")
    settings = read_settings(folder)
    found = f"no fine-tuned model with its {SETTINGS_FILE}"
    if settings is None:
        refuse_trials(folder)
        if export := find_export(folder):
            raise export.format.refusal(export.folder)
    else:
        found = f"a run of {settings.get('command', 'another kind')}, not a fine-tuned model"
    kind = None if settings is None else _task_of(settings, folder)
    if kind is None:
        raise InputError(
            f"{folder} holds {found}; name a folder that a command that trains or albert_tf.fit has written"
        )
    config = AlbertConfig.from_json_file(os.path.join(folder, CONFIG_FILE))
    path = os.path.join(folder, SETTINGS_FILE)
    check_types(settings, {"max_seq_length": int, **kind.setting_types}, path, ("max_seq_length", *kind.setting_types))
    task = kind.from_settings(config, settings)
    task.restore(folder)
    checkpoint = find_checkpoint(folder, source)
    model = _with_weights(task.make_models(dtype=dtype)["model"], checkpoint, source)
    tokenizer = _tokenizer_of(folder, tokenizer, config)
    is_assumed, length = settings.get(TEXTS_ARE_ASSUMED) is True, settings["max_seq_length"]
    return TrainedModel(
        model,
        tokenizer,
        length,
        task,
        checkpoint,
        _results(folder),
        texts_are_assumed=is_assumed,
        encoder_settings=dict(task.encoder_settings),
    )


def load_trained(
    folder: str | os.PathLike, source: str, tokenizer: Tokenizer | None = None, dtype: str = "float32"
) -> TrainedModel:
    """Loads a run of any command, or a published model.

    Args:
        folder: Of a fine-tuned or a pre-trained model.
        source: Errors begin with it.
        tokenizer: For a folder that holds none; None for the folder's.
        dtype: A Keras policy such as "mixed_bfloat16", for products.

    Raises:
        InputError: The folder holds no model, or another tokenizer than is given.
    """
    folder = os.fspath(folder)
    settings = read_settings(folder) or {}
    if _task_of(settings, folder) is not None:
        return load_finetuned(folder, source, tokenizer, dtype)
    checkpoint = find_checkpoint(folder, source)
    config = read_config(checkpoint, source)
    objective = _pretrained_objective(settings, config, checkpoint)
    model = objective.make_model(dtype=dtype)
    _, missing, _ = load_weights(checkpoint, named_variables(model), source)
    # Heads, and what only they read, other libraries may leave out.
    lacking = [name for name in missing if name.startswith("encoder/") and not name.startswith(_POOLER)]
    if lacking:
        raise InputError(f"{source}: {checkpoint} lacks {lacking[0]}; it does not belong to this model")
    tokenizer, results = _tokenizer_of(folder, tokenizer, config), _results(folder)
    untrained = frozenset(missing) | read_untrained(checkpoint)
    learnt = objective.fills_masks, objective.predicts_next
    encoder = read_encoder_settings(folder)
    length = min(config.longest_sequence, encoder.get("max_seq_length", config.longest_sequence))
    return TrainedModel(
        model, tokenizer, length, None, checkpoint, results, untrained, *learnt, encoder_settings=encoder
    )


def _pretrained_objective(settings, config, checkpoint):
    """Returns the objective of pre-training; if a model doesn't say it, that of its heads, or the usual one."""
    learnt = what_was_learnt(settings)
    if not learnt:
        heads = {variable.split("/")[1] for variable in only_model(CheckpointReader(checkpoint).shapes)}
        if _REPLACED_TOKEN_HEAD.strip("/") not in heads:
            return make_objective(usual_objective(config), config)
        is_shared = _MASKED_LM_HEAD.strip("/") in heads
        # Nobody asks for a generator, which might not have a quarter of the heads: one as wide is always one.
        generator = {"share_generator": True} if is_shared else {"generator_size": 1.0}
        return make_objective("electra", config, settings=generator)
    return make_objective(learnt.pop("objective"), config, settings=learnt)


def _task_of(settings, folder):
    """Returns the class of the task that a run was for, by its settings; None if it was none."""
    path = os.path.join(folder, SETTINGS_FILE)
    name = check_types(settings, {"objective": str, "command": str}, path).get("objective")
    return next((task for task in TASKS.values() if task.__name__ == name), None)


def _with_weights(model, checkpoint, source):
    _, missing, _ = load_weights(checkpoint, named_variables(model), source)
    if not model.reads_pooler:  # models of other libraries have none where none is read
        missing = [name for name in missing if not name.startswith(_POOLER)]
    if missing:
        raise InputError(f"{source}: {checkpoint} lacks {missing[0]}; it was not trained for this task")
    return model


def _tokenizer_of(folder, tokenizer, config):
    path = os.path.join(folder, TOKENIZER_FILE)
    if tokenizer is None:
        tokenizer = load_tokenizer(folder)
    elif tf.io.gfile.exists(path) and not tokenizer.is_saved_as(path):
        raise InputError(
            f"{tokenizer.vocabulary.source} is not the tokenizer of {path}, which it was trained with; leave it out"
        )
    config.check_vocabulary(tokenizer.vocabulary)
    return tokenizer


def _results(folder):
    path = os.path.join(folder, EVAL_RESULTS_FILE)
    return read_results(path) if tf.io.gfile.exists(path) else {}
