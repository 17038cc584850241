"""Fine-tuning settings where the user gives none, from the number of examples and the size of the model.

docs/classification.md tells how these were chosen.
"""

import inspect
import math
import typing

import numpy as np

from albert_tf.base.checkpoint_files import CheckpointReader, only_model, resolve_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.settings import settings_of
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.tokenization import Tokenizer
from albert_tf.training import RunSettings

WARMUP_PROPORTION = 0.1
_SHARE_UNCUT = 0.995
_LENGTH_STEP = 8
_SMALL, _MANY, _MANY_PAIRS = 256, 5000, 20_000  # a hidden size, numbers of examples
_LAYERS_AT_FULL_RATE = 4
_EVALUATIONS = 10, 20  # of a run that may end early
_DROPOUT_AFTER_FEW, _DROPOUT_AFTER_MANY = 0.2, 0.1
_TOKEN_DROPOUT, _TOKEN_DROPOUT_OF_PAIRS = 0.15, 0.25


def default_learning_rate(config: AlbertConfig, is_pretrained: bool, highest: float | None = None) -> float:
    """Returns a peak learning rate: the original's 5e-5 at hidden size 768 and above; the smaller the model the higher.

    It is at most 1.5e-4 where the model has much to keep, and at most 5e-4 from random weights; less above 4 layers,
    for at 5e-4 a random model of 12 layers learns nothing. Where a head aligns pairs, which has much to learn and leads
    past the layers, it is at most 5e-4, pre-trained or not. `highest` is the task's own limit in place of these.
    """
    if config.classifier_pooling == "aligned":
        limit = 5e-4
    else:
        limit = 1.5e-4 if is_pretrained else 5e-4 * min(1.0, _LAYERS_AT_FULL_RATE / config.num_hidden_layers)
    highest = highest or limit
    return float(f"{np.clip(5e-5 * (768 / config.hidden_size) ** 2.1, 5e-5, highest):.1e}")


def has_much_to_keep(init_checkpoint: str | None) -> bool:
    """Returns whether a training begins with a model that a high rate would spoil: any that was pre-trained."""
    # But what has told replaced pieces (ELECTRA) doesn't hold which piece is missing in its last states: with 1,000
    # labels a small one came to 68.3% at 1.5e-4, as random weights did, and to 75.7% at 5e-4 (docs/objectives.md).
    path = resolve_checkpoint(init_checkpoint) if init_checkpoint else None
    if path is None:
        return init_checkpoint is not None
    return not any("/replaced_token_head/" in name for name in only_model(CheckpointReader(path).shapes))


def default_pooling(config: AlbertConfig, reads_pairs: bool) -> str:
    """Returns the pooling to read the label off: small models need help to compare pairs, single texts need none."""
    if reads_pairs and _is_small(config):
        return "aligned"
    if config.classifier_pooling == "aligned" and not reads_pairs:
        return "last" if config.is_causal else "mean"
    return with_pooling_that_sees_the_text(config).classifier_pooling


def with_pooling_that_sees_the_text(config: AlbertConfig) -> AlbertConfig:
    """Returns a config whose head reads the last piece where the first one sees nothing, as in GPT."""
    is_blind = config.is_causal and config.classifier_pooling == "first"
    return config.replace(classifier_pooling="last") if is_blind else config


def check_pooling_sees_the_text(config: AlbertConfig, pooling: str | None) -> None:
    """Raises InputError if a label is to be read off the first piece, and that sees nothing, as in GPT."""
    if config.is_causal and pooling == "first":
        raise InputError(
            "`pooling=first` reads the first piece, which sees nothing of the text (is_causal=true); use `pooling=last`"
        )


def default_question_alignment(config: AlbertConfig) -> str:
    """Returns whether a text is aligned with the question that is asked about it: for small models, by words."""
    return "words" if _is_small(config) else config.question_alignment


def default_character_ngrams(config: AlbertConfig) -> bool:
    """Returns whether the characters of a word are read beside its pieces: in small models, which it helps most."""
    return config.character_ngrams or _is_small(config)


def default_num_train_epochs(num_examples: int, token_dropout: float = 0.0) -> float:
    """Returns how often to pass over so many examples: 35 times over 200, 16 times over 1,000, 4 times over 20,000."""
    # With a quarter of their pieces hidden or more it takes half as many passes more.
    longer = 1.5 if token_dropout >= _TOKEN_DROPOUT_OF_PAIRS else 1.0
    return float(np.clip(round(longer * round(500 / math.sqrt(num_examples))), 3, 60))


def with_default_dropout(config: AlbertConfig, num_examples: int) -> AlbertConfig:
    """Returns a config with the dropout to fine-tune with: in small models at least 0.2, or 0.1 after many examples."""
    # Small models are best pre-trained without; the few labels that they are fine-tuned on are soon known by heart.
    # Pairs that are aligned are known by heart sooner, and many examples of them are more.
    if not _is_small(config):
        return config
    many = _MANY_PAIRS if config.classifier_pooling == "aligned" else _MANY
    dropout = _DROPOUT_AFTER_FEW if num_examples < many else _DROPOUT_AFTER_MANY
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    return config.replace(**{name: max(dropout, getattr(config, name)) for name in names})


def default_token_dropout(config: AlbertConfig, may_hide_pieces: bool, predicts_numbers: bool = False) -> float:
    """Returns which share of the pieces to hide: none for large models, and where the task allows none."""
    # Of pairs that are aligned more is hidden, for they are known by heart sooner; but how alike two texts are, as a
    # number, hangs on more of their pieces than whether they are.
    if not (_is_small(config) and may_hide_pieces):
        return 0.0
    hides_more = config.classifier_pooling == "aligned" and not predicts_numbers
    return _TOKEN_DROPOUT_OF_PAIRS if hides_more else _TOKEN_DROPOUT


def _is_small(config):
    return config.hidden_size <= _SMALL


def num_steps(num_train_epochs: float, num_examples: int, train_batch_size: int) -> int:
    """Returns how many steps so many passes take, at least one."""
    return max(1, round(num_train_epochs * num_examples / train_batch_size))


def evaluation_period(num_train_steps: int, num_examples: int, train_batch_size: int) -> int:
    """Returns every how many steps to evaluate where training is to end early."""
    # That is once a pass over the examples, but ten times a run at least and twenty times at most: less often would let
    # the best weights go by, and more often would have each evaluation cost what training does.
    passes = num_train_steps * train_batch_size / num_examples
    return math.ceil(num_train_steps / np.clip(math.ceil(passes), *_EVALUATIONS))


def training_defaults(
    config: AlbertConfig,
    num_examples: int,
    train_batch_size: int,
    init_checkpoint: str | None = None,
    token_dropout: float = 0.0,
    num_train_epochs: float | None = None,
    num_train_steps: int | None = None,
    highest_learning_rate: float | None = None,
) -> dict[str, typing.Any]:
    """Returns the settings of a training that does well without tuning: its length, warm-up and peak learning rate."""
    # `num_train_steps` goes before epochs; `token_dropout` is the share of pieces hidden.
    epochs = num_train_epochs or default_num_train_epochs(num_examples, token_dropout)
    num_train_steps = num_train_steps or num_steps(epochs, num_examples, train_batch_size)
    return {
        "num_train_steps": num_train_steps,
        "num_warmup_steps": int(WARMUP_PROPORTION * num_train_steps),
        "learning_rate": default_learning_rate(config, has_much_to_keep(init_checkpoint), highest_learning_rate),
    }


def finetuning_settings(
    config: AlbertConfig, num_examples: int, train_batch_size: int = 32, **given: typing.Any
) -> RunSettings:
    """Returns the settings of a run with `training_defaults`, which given ones replace, for Python without commands."""
    names = inspect.signature(training_defaults).parameters
    chosen = training_defaults(
        config, num_examples, train_batch_size, **{name: value for name, value in given.items() if name in names}
    )
    # What neither knows is refused by the latter.
    of_run = {name: value for name, value in given.items() if name not in names or name in settings_of(RunSettings)}
    if of_run.get("early_stopping"):
        chosen["eval_every_steps"] = evaluation_period(chosen["num_train_steps"], num_examples, train_batch_size)
    fixed = {"optimizer": "adamw", "bias_correction": True, "train_batch_size": train_batch_size}
    return RunSettings(**{**fixed, **chosen, **of_run})


def choose_max_seq_length(task: FinetuningTask, examples: list[typing.Any], tokenizer: Tokenizer) -> int:
    """Returns the shortest length that leaves 99.5% of the encoded examples uncut, a multiple of 8."""
    longest = task.config.longest_sequence
    lengths = task.encode(examples, tokenizer, longest)["input_mask"].sum(axis=-1)
    needed = int(np.quantile(lengths, _SHARE_UNCUT, method="higher"))
    return min(longest, _LENGTH_STEP * math.ceil(needed / _LENGTH_STEP))
