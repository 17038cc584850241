"""Shards as run_pretraining.py finds them: with the manifest and tokenizer beside them, or the original's, bare."""

import dataclasses
import os

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import match_files, read_json
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.builder import MANIFEST_FILE, masking_tokens
from albert_tf.pretraining_data.input_pipeline import InputOptions, check_readable
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE

# The original's defaults (run_pretraining.py), for shards that come without a manifest.
_ORIGINAL_MAX_SEQ_LENGTH = 512
_ORIGINAL_MAX_PREDICTIONS_PER_SEQ = 20


@dataclasses.dataclass(frozen=True)
class ShardSet:
    """Shards and what is known of them.

    Attributes:
        train_paths: Shards for training.
        held_out_paths: Shards for evaluation, maybe none.
        train_options: How to read the former.
        held_out_options: How to read the latter.
        tokenizer: The tokenizer they were made with, None if unknown.
        manifest: What the builder wrote, empty if unknown.
    """

    train_paths: list[str]
    held_out_paths: list[str]
    train_options: InputOptions
    held_out_options: InputOptions
    tokenizer: KoreanWordPieceTokenizer | None
    manifest: dict


def find_shards(
    input_file: list[str],
    held_out_file: list[str],
    max_seq_length: int | None,
    max_predictions_per_seq: int | None,
    config: AlbertConfig,
) -> ShardSet:
    """Finds shards and checks that they, the flags and the model go together.

    Args:
        input_file: Paths or globs of training shards; held-out shards of the manifest are left out.
        held_out_file: Paths or globs of evaluation shards; none for those that the manifest names.
        max_seq_length: What the flag says, None if it was not given.
        max_predictions_per_seq: Likewise.
        config: The model.

    Raises:
        InputError: Something is missing or doesn't fit, named with flag and file.
    """
    train_paths = match_files(input_file, "input_file")
    folder = os.path.dirname(train_paths[0])
    manifest_path = os.path.join(folder, MANIFEST_FILE)
    manifest = read_json(manifest_path, "the manifest") if tf.io.gfile.exists(manifest_path) else {}
    for flag, value in (("max_seq_length", max_seq_length), ("max_predictions_per_seq", max_predictions_per_seq)):
        if value is not None and manifest.get(flag, value) != value:
            raise InputError(f"--{flag}={value} contradicts {manifest_path}, which says {manifest[flag]}")
    max_seq_length = manifest.get("max_seq_length", max_seq_length or _ORIGINAL_MAX_SEQ_LENGTH)
    max_predictions_per_seq = manifest.get(
        "max_predictions_per_seq", max_predictions_per_seq or _ORIGINAL_MAX_PREDICTIONS_PER_SEQ
    )
    if max_seq_length > config.max_position_embeddings:
        raise InputError(
            f"the shards hold sequences of {max_seq_length}, but the model's max_position_embeddings is "
            f"{config.max_position_embeddings}; raise it in --albert_config_file or make shorter examples"
        )

    held_out_names = manifest.get("splits", {}).get("held_out", {}).get("files", [])
    own_held_out = [os.path.join(folder, name) for name in held_out_names]
    train_paths = [path for path in train_paths if path not in own_held_out]
    if not train_paths:
        raise InputError(f"--input_file: {', '.join(input_file)} names held-out shards only")
    held_out_file = held_out_file or own_held_out
    held_out_paths = match_files(held_out_file, "held_out_file") if held_out_file else []

    tokenizer = None
    if tf.io.gfile.exists(os.path.join(folder, TOKENIZER_FILE)):
        tokenizer = KoreanWordPieceTokenizer.load(folder)
        if manifest.get("tokenizer", {}).get("identity", tokenizer.identity) != tokenizer.identity:
            raise InputError(
                f"{os.path.join(folder, TOKENIZER_FILE)} is not the tokenizer that the shards were made with; put "
                "theirs back, or run create_pretraining_data.py again"
            )
        if len(tokenizer.vocabulary) != config.vocab_size:
            raise InputError(
                f"vocab_size in --albert_config_file is {config.vocab_size}, but {tokenizer.vocabulary.source} has "
                f"{len(tokenizer.vocabulary)} pieces; make them equal"
            )

    def options_for(paths):
        is_static = not paths or records.is_static(paths[0])
        if is_static:
            return InputOptions(max_seq_length, max_predictions_per_seq, True)
        if tokenizer is None:
            raise InputError(f"{paths[0]} is not masked yet, which needs tokenizer.json and vocab.txt in its folder")
        settings = manifest.get("options", {}).get("masking_options", {})
        masking = MaskingOptions(**{**settings, "max_predictions_per_seq": max_predictions_per_seq})
        return InputOptions(max_seq_length, max_predictions_per_seq, False, masking, masking_tokens(tokenizer))

    train_options, held_out_options = options_for(train_paths), options_for(held_out_paths)
    check_readable(train_paths, train_options)
    check_readable(held_out_paths, held_out_options)
    return ShardSet(train_paths, held_out_paths, train_options, held_out_options, tokenizer, manifest)
