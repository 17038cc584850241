"""Finds shards for training: ours, with manifest and tokenizer beside them, or bare ones of the original."""

import dataclasses
import os

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import match_files, sha256_of
from albert_tf.config import AlbertConfig
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.input_pipeline import InputOptions, check_readable
from albert_tf.pretraining_data.manifest import (
    HELD_OUT,
    MANIFEST_FILE,
    TRAIN,
    WORK_FOLDER,
    features_of,
    listed_shards,
    masking_options,
    mention_options,
    packing_of,
    read_manifest,
)
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import Packing
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE

ON_DAMAGED_SHARD_CHOICES = ("fail", "skip")

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
        packing: How their examples were packed.
        masking: How examples are masked; without tokens if the tokenizer is unknown, and all are masked already.
        tokenizer: The tokenizer they were made with, None if unknown.
        manifest: What the builder wrote, empty if unknown.
        examples_per_shard: How many examples each of `train_paths` holds, None if unknown.
        damage: The training shards that are left out because they are damaged, and what is wrong with each.
    """

    train_paths: list[str]
    held_out_paths: list[str]
    train_options: InputOptions
    held_out_options: InputOptions
    packing: Packing
    masking: MaskingOptions
    tokenizer: Tokenizer | None
    manifest: dict
    examples_per_shard: list[int] | None
    damage: dict[str, str]

    @property
    def objective(self) -> str | None:
        """The objective that the builder was told; None for the packing's default."""
        return self.manifest.get("options", {}).get("objective")

    @property
    def sources(self) -> tuple[str, ...]:
        """The languages of their text, joined by + where they are tables of pairs; empty where nothing says them."""
        return tuple(self.manifest.get("options", {}).get("sources", ()))

    @property
    def sources_of_shards(self) -> list[int]:
        """The number of the source of each of `train_paths`: the builder writes as many shards of each, one by one."""
        names = self.manifest["splits"][TRAIN]["files"]
        return [names.index(os.path.basename(path)) * len(self.sources) // len(names) for path in self.train_paths]

    @property
    def tokens_of_sources(self) -> list[int]:
        """How many pieces there are of each source to train on."""
        tokens = self.manifest["splits"][TRAIN]["tokens_per_source"]
        return [tokens[name] for name in self.sources]

    def blind_accuracy(self, batch_size: int) -> float | None:
        return self.packing.blind_accuracy(self.manifest.get("splits", {}).get(HELD_OUT, {}), batch_size)


def find_shards(
    input_file: list[str],
    config: AlbertConfig,
    held_out_file: list[str] | None = None,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    on_damaged_shard: str = "fail",
    flag_prefix: str = "",
) -> ShardSet:
    """Finds shards and checks that they, the flags and the model go together.

    Files are paths or globs; held-out shards of the manifest are left out of `input_file`, and are the default of
    `held_out_file`. Of damaged shards "fail" compares the sizes with the manifest, and refuses them; "skip" also reads
    all of them through, compares their SHA-256, and leaves out damaged training shards; evaluation is on all shards or
    none. The prefix stands before input_file and held_out_file in messages.
    """
    _refuse_unfinished_build([*input_file, *(held_out_file or [])])
    train_paths = match_files(input_file, f"{flag_prefix}input_file")
    _refuse_unfinished_build(train_paths)
    folder = _Folder.of(train_paths)
    packing = packing_of(folder.manifest, folder.manifest_path)
    max_seq_length = folder.length("max_seq_length", max_seq_length, _ORIGINAL_MAX_SEQ_LENGTH)
    max_predictions_per_seq = folder.length(
        "max_predictions_per_seq", max_predictions_per_seq, _ORIGINAL_MAX_PREDICTIONS_PER_SEQ
    )
    config.check_max_seq_length(max_seq_length, "the shards' max_seq_length")
    tokenizer = folder.load_tokenizer(config)

    folder.check_shards(train_paths)
    own_held_out = folder.shards(HELD_OUT)
    train_paths = [path for path in train_paths if path not in own_held_out]
    if not train_paths:
        raise InputError(f"`{flag_prefix}input_file`: {', '.join(input_file)} names held-out shards only")
    held_out_file = held_out_file or own_held_out
    held_out_paths = match_files(held_out_file, f"{flag_prefix}held_out_file") if held_out_file else []
    _check_tokenizer_of(train_paths, tokenizer, f"{flag_prefix}input_file")
    if tokenizer is not None:
        _check_tokenizer_of(held_out_paths, tokenizer, f"{flag_prefix}held_out_file")
    _check_mentions_of(held_out_paths, folder.manifest, f"{flag_prefix}held_out_file")

    reads_through = on_damaged_shard == "skip"
    records.refuse_damage(folder.find_damage(held_out_paths, reads_through))
    damage = folder.find_damage(train_paths, reads_through)
    train_paths = [path for path in train_paths if path not in damage]
    if on_damaged_shard == "fail" or not train_paths:
        records.refuse_damage(damage)

    def options_for(paths):
        is_static = not paths or records.is_static(paths[0])
        if not is_static and tokenizer is None:
            raise InputError(
                f"{paths[0]} is not masked yet; put tokenizer.json and vocab.txt or spiece.model beside it"
            )
        features = features_of(packing, folder.manifest.get("options", {}).get("sources", ()))
        return InputOptions(max_seq_length, max_predictions_per_seq, is_static, features)

    train_options, held_out_options = options_for(train_paths), options_for(held_out_paths)
    check_readable(train_paths, train_options)
    check_readable(held_out_paths, held_out_options)
    return ShardSet(
        train_paths=train_paths,
        held_out_paths=held_out_paths,
        train_options=train_options,
        held_out_options=held_out_options,
        packing=packing,
        masking=folder.masking(tokenizer, max_predictions_per_seq),
        tokenizer=tokenizer,
        manifest=folder.manifest,
        examples_per_shard=folder.numbers("examples_per_shard", train_paths),
        damage=damage,
    )


def find_tokenizer(input_file: list[str]) -> Tokenizer | None:
    """Returns the tokenizer beside the shards that paths or globs name, None if there is none."""
    _refuse_unfinished_build(input_file)
    path = _Folder.of(match_files(input_file, "input_file")).path
    return load_tokenizer(path) if tf.io.gfile.exists(os.path.join(path, TOKENIZER_FILE)) else None


@dataclasses.dataclass(frozen=True)
class _Folder:
    path: str
    manifest: dict

    @classmethod
    def of(cls, paths):
        """Returns the shards' folder; the first with a manifest if they lie in several."""
        folders = list(dict.fromkeys(map(os.path.dirname, paths)))
        for folder in folders:
            if manifest := read_manifest(os.path.join(folder, MANIFEST_FILE)):
                return cls(folder, manifest)
        return cls(folders[0], {})

    @property
    def manifest_path(self):
        return os.path.join(self.path, MANIFEST_FILE)

    def length(self, flag, value, default):
        """Returns the length in the manifest, else that of the flag, else the default."""
        if value is not None and self.manifest.get(flag, value) != value:
            raise InputError(f"`{flag}={value}` contradicts {self.manifest_path}, which says {self.manifest[flag]}")
        return self.manifest.get(flag, value or default)

    def load_tokenizer(self, config):
        path = os.path.join(self.path, TOKENIZER_FILE)
        if not tf.io.gfile.exists(path):
            config.check_vocab_size(self.manifest.get("vocab_size", config.vocab_size), self.manifest_path)
            if config.position_offset:
                raise InputError(
                    f"there is no {TOKENIZER_FILE} in {self.path} to tell the id of [PAD], by which a model of "
                    f"position_offset={config.position_offset} counts positions; put the tokenizer of the shards there"
                )
            return None
        tokenizer = load_tokenizer(self.path)
        if self.manifest.get("tokenizer", {}).get("identity", tokenizer.identity) != tokenizer.identity:
            raise InputError(
                f"{path} is not the tokenizer that the shards were made with; put theirs back, or make them again"
            )
        config.check_vocabulary(tokenizer.vocabulary)
        return tokenizer

    def masking(self, tokenizer, max_predictions_per_seq):
        """Returns how the builder was told to mask, without tokens where its tokenizer is unknown."""
        told = tokenizer and masking_options(self.manifest, self.manifest_path)
        options = dataclasses.replace(told or MaskingOptions(), max_predictions_per_seq=max_predictions_per_seq)
        return options.with_tokens_of(tokenizer.vocabulary) if tokenizer else options

    def shards(self, split):
        return listed_shards(self.manifest, self.path, split)

    def numbers(self, name, paths):
        """Returns the entry of each shard in a list of the manifest's splits; None if it doesn't hold all of them."""
        numbers = {}
        for split in self.manifest.get("splits", {}):
            numbers.update(zip(self.shards(split), self._split(split).get(name, [])))
        return [numbers[path] for path in paths] if numbers.keys() >= set(paths) else None

    def check_shards(self, paths):
        """Checks that the manifest lists each of these shards, and that no training shard that it lists is missing."""
        if not self.shards(TRAIN):
            return
        unknown = [path for path in paths if path not in {*self.shards(TRAIN), *self.shards(HELD_OUT)}]
        if unknown:
            raise InputError(
                f"`input_file`: {unknown[0]} is not among the shards that {self.manifest_path} lists, so it is of "
                "another build; leave it out, or build all shards together"
            )
        present = set(tf.io.gfile.listdir(self.path or "."))
        missing = [path for path in self.shards(TRAIN) if os.path.basename(path) not in present]
        if missing:
            raise InputError(f"{missing[0]} is missing, but {self.manifest_path} lists it; copy or make it again")

    def find_damage(self, paths, reads_through):
        """Returns the shards that are not those of the manifest, or can't be read through, and what is wrong.

        By default only sizes are compared: to read all shards before a run would take as long as an epoch's reading.
        """
        damage = {}
        expected = self.numbers("bytes_per_shard", paths)
        if expected is not None:
            sizes = records.look_through(lambda path: tf.io.gfile.stat(path).length, paths)
            for path, size, expected_size in zip(paths, sizes, expected):
                if size != expected_size:
                    damage[path] = f"{size:,} bytes instead of {expected_size:,}"
        if reads_through:
            rest = [path for path in paths if path not in damage]
            digests = self.numbers("sha256_per_shard", paths)
            if digests is not None:
                expected, found = dict(zip(paths, digests)), records.look_through(sha256_of, rest)
                rest = [path for path, digest in zip(rest, found) if digest != expected[path]]
                damage |= dict.fromkeys(rest, "changed since it was made, by its SHA-256")
            damage |= records.find_damage(rest)
        return damage

    def _split(self, split):
        return self.manifest.get("splits", {}).get(split, {})


def _check_tokenizer_of(paths, tokenizer, setting):
    """Checks that shards of several folders, as far as these tell, were made with one tokenizer."""
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        path = os.path.join(folder, TOKENIZER_FILE)
        if tf.io.gfile.exists(path) and not (tokenizer and tokenizer.is_saved_as(path)):
            raise InputError(
                f"`{setting}`: the shards beside {path} were made with that tokenizer, which is not the one of the "
                "first training shards; make all shards with the same one, and keep it beside each"
            )


def _check_mentions_of(paths, manifest, setting):
    """Checks that the shards of other folders, as far as these tell, are masked by the names of the training shards."""
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        path = os.path.join(folder, MANIFEST_FILE)
        other = read_manifest(path)
        if other and manifest and mention_options(other) != mention_options(manifest):
            raise InputError(
                f"`{setting}`: {path} lists other names of entities to mask whole than the manifest of the "
                "training shards; make both with the same `entity_file`, or both without"
            )


def _refuse_unfinished_build(paths):
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        is_unfinished = tf.io.gfile.exists(os.path.join(folder, WORK_FOLDER))
        if is_unfinished and not tf.io.gfile.exists(os.path.join(folder, MANIFEST_FILE)):
            raise InputError(
                f"{folder or '.'} holds shards of an unfinished build; run create_pretraining_data.py --resume"
            )
