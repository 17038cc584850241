"""Pre-training by a teacher: a frozen model that a student is compared with."""

import dataclasses

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import RARE, Settings, check_number, setting
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, bias_of, visible_keys, with_first_position
from albert_tf.modeling.pretrained import read_config
from albert_tf.modeling.student import begin_with_layers, check_layers, parse_layers
from albert_tf.objectives.distillation_losses import DISTILLATION_LOSSES, Reading
from albert_tf.objectives.language_models import MaskedLM, original_ids
from albert_tf.objectives.losses import States
from albert_tf.objectives.matching_halves import find_halves
from albert_tf.objectives.objective import (
    POOLER,
    TRAINING_FLOPS_PER_PRODUCT,
    Objective,
    encoder_batch_spec,
    encoder_products,
    refuse_causal,
    refuse_entities,
    refuse_languages,
)
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import Packing

TEACHER = "teacher"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationSettings(Settings):
    teacher: str = setting(
        "", "Folder of the model to distil, of albert_tf or transformers.", names_model=True, group=RARE
    )
    distillation: str = setting(
        "relations", f"What a student learns from its teacher: {' or '.join(DISTILLATION_LOSSES)}.", group=RARE
    )
    relation_heads: int = setting(
        0, "Number of heads for relations; a divisor of both widths, or 0 to have it chosen.", group=RARE
    )
    teacher_layer: int = setting(
        -1, "Layer of the teacher whose relations are learnt, counted from 0; -1 for the last.", group=RARE
    )
    masked_lm_weight: float = setting(
        -1.0, "Weight of an additional masked_lm loss; -1 is 0 for relations and layers, and 2 for logits.", group=RARE
    )
    student_layers: str = setting(
        "", "Layers of the teacher that the student starts from, counted from 0, such as 0,2,4,7,9,11.", group=RARE
    )


# Variables for pre-training that nothing here reads.
_UNREAD = (POOLER, "sentence_order_head/")
_FORWARD_FLOPS_PER_PRODUCT = 2


class Distillation(Objective):
    """A distillation loss, and beside it the masked language model.

    Both models read the same ids, which are masked only if masked tokens are learnt.

    Args:
        config: Hyper-parameters of the student, the model that the run is for.
        settings: Without a teacher there is a model, but nothing to train.

    Raises:
        InputError: There is no such distillation loss or teacher, a setting is for another loss, or the two models
            can't be compared.
    """

    title = "pre-training loss"
    carries_vocabulary = True

    def __init__(
        self, config: AlbertConfig, settings: DistillationSettings, masking: MaskingOptions, packing: Packing, **others
    ):
        self.config = config
        name = settings.distillation
        if name not in DISTILLATION_LOSSES:
            raise InputError(f"`distillation={name}` must be one of {', '.join(DISTILLATION_LOSSES)}")
        _check_settings_of_others(name, settings)
        self._settings, self._loss = settings, DISTILLATION_LOSSES[name](settings)
        self.auxiliary_models = self._loss.auxiliary_models
        weight = settings.masked_lm_weight
        check_number("masked_lm_weight", weight, "from 0 on, or -1", lambda value: value >= 0 or value == -1)
        weight = self._loss.masked_lm_coefficient if weight < 0 else weight
        self._masked_lm = MaskedLM(config, masking) if weight else None
        masked_lm = {self._masked_lm.loss_name: weight} if weight else {}
        self.loss_coefficients = masked_lm | self._loss.coefficients
        self.metric_names = (*(self._masked_lm.metric_names if weight else ()), *self._loss.metric_names)
        self.fills_masks = bool(weight) or self._loss.reads_guesses
        self._are_halves = packing.name == "halves"
        self._layers = parse_layers(settings.student_layers) if settings.student_layers else ()
        self.teacher_folder = settings.teacher
        self.frozen_models = {TEACHER: self.teacher_folder}
        self._source = f"`{TEACHER}={self.teacher_folder}`"
        self.teacher_config = _read_teacher(self.teacher_folder, self._source) if self.teacher_folder else None
        _check_model(config, "the student")
        if self.teacher_config is not None:
            _check_model(self.teacher_config, self._source)
            if self._layers:
                check_layers(config, self.teacher_config, self._layers)
            self._loss.check(config, self.teacher_config, self._source)

    def make_model(self, **options):
        return AlbertForPreTraining(self.config, **options)

    def make_models(self, **options):
        if self.teacher_config is None:
            raise InputError(f"`objective=distil` needs a teacher; name the folder of a model with `{TEACHER}`")
        # Kernels are tried with the heads of the student before a run; what was not tried is not used.
        has_same_heads = _head_size(self.teacher_config) == _head_size(self.config)
        attention = "auto" if has_same_heads and options.get("attention") != "plain" else "plain"
        options_of_teacher = {**options, "remat": "none", "attention": attention}
        kind = AlbertForPreTraining if self._loss.reads_guesses else AlbertEncoder
        models = {"model": self.make_model(**options), TEACHER: kind(self.teacher_config, **options_of_teacher)}
        return models | self._loss.make_auxiliary_models(self.config, self.teacher_config, options.get("dtype"))

    def begin(self, model):
        """Assigns the layers that `student_layers` names."""
        if not self._layers:
            return None
        return begin_with_layers(model, self._layers, self.teacher_folder, self._source)

    def prepare(self, features, seed):
        if self._masked_lm is not None:
            features = {**features, **self._masked_lm.prepare(features, seed)}
        elif "masked_lm_positions" in features:
            features = {**features, "input_ids": original_ids(features)}
        return {name: features[name] for name in self.batch_spec(features["input_ids"].shape[1])}

    def batch_spec(self, max_seq_length):
        if self.teacher_config is not None:
            self.teacher_config.check_max_seq_length(max_seq_length, f"in `{TEACHER}`, max_seq_length")
        masked = self._masked_lm.batch_spec(max_seq_length) if self._masked_lm else {}
        return encoder_batch_spec(max_seq_length) | masked

    def separates_documents(self, batch_spec):
        return self._are_halves

    def loss_weights(self, batch):
        num_pieces = tf.reduce_sum(tf.cast(batch["input_mask"], tf.float32))
        masked = {self._masked_lm.loss_name: self._masked_lm.weight(batch)} if self._masked_lm else {}
        return masked | dict.fromkeys(self._loss.coefficients, num_pieces)

    def compute(self, batch, training, dropout_seed, model, teacher, **auxiliary_models):
        positions = None
        if self._masked_lm is not None and not self._loss.reads_last_states:
            positions = with_first_position(batch["masked_lm_positions"])
        outputs = model.encoder(
            self._inputs(batch, self.config),
            training=training,
            dropout_seed=dropout_seed,
            output_positions=positions,
            output_hidden_states=True,
        )
        # It is never in training, whatever the student is.
        encoder, head = (teacher.encoder, teacher.masked_lm_head) if self._loss.reads_guesses else (teacher, None)
        taught = encoder(self._inputs(batch, encoder.config), training=False, output_hidden_states=True)
        results = self._loss.compute(
            Reading(model.encoder, outputs, model.masked_lm_head),
            Reading(encoder, tf.nest.map_structure(tf.stop_gradient, taught), head),
            self._bias(batch),
            tf.cast(batch["input_mask"], tf.float32),
            **auxiliary_models,
        )
        if self._masked_lm is None:
            return results
        states = States(outputs["sequence_output"], None, positions is not None)
        names = self._masked_lm.loss_name, *self._masked_lm.metric_names
        return results | dict(zip(names, self._masked_lm.compute(model, states, batch), strict=True))

    def _inputs(self, batch, config):
        if not self._are_halves:
            return {name: batch[name] for name in encoder_batch_spec(1)}
        halves = find_halves(batch)  # each a text of its own, as where `MatchingHalves` is learnt
        return {
            "input_ids": batch["input_ids"],
            "document_ids": halves.document_ids,
            "position_ids": halves.position_ids + config.position_offset,
        }

    def _bias(self, batch):
        bias = (1.0 - tf.cast(batch["input_mask"][:, None], tf.float32)) * HIDDEN_SCORE
        documents = find_halves(batch).document_ids if self._are_halves else None
        return bias_of(visible_keys(bias, documents, False, None))

    def identity(self):
        """Returns name and settings; the teacher is identified by its content."""
        own = {name: value for name, value in self._settings.kept().items() if name != TEACHER}
        return {**super().identity(), **own}

    def untouched(self, model):
        if self.fills_masks:
            return _UNREAD
        unreached = () if self._loss.reads_last_states else _unreached(model.encoder)
        return *_UNREAD, "masked_lm_head/", *unreached

    def flops(self, batch_spec):
        batch_size, length = batch_spec["input_ids"].shape
        read = length if self._loss.reads_last_states else 0
        if self._masked_lm and not read:
            read = 1 + batch_spec["masked_lm_positions"].shape[1]
        learnt = encoder_products(self.config, length, read)
        learnt += self._masked_lm.products(batch_spec) if self._masked_lm else 0
        compared, taught = self._loss.products(self.config, self.teacher_config, length)
        return batch_size * (TRAINING_FLOPS_PER_PRODUCT * (learnt + compared) + _FORWARD_FLOPS_PER_PRODUCT * taught)

    def uncounted_flops(self, batch_spec):
        masked = self._masked_lm.uncounted_flops(batch_spec) if self._masked_lm else 0
        return masked + self._loss.uncounted_flops(self.config, self.teacher_config, batch_spec)


def _read_teacher(folder, source):
    """Returns the config of the model in a folder, without a pooler, which no distillation loss reads."""
    if not any(tf.io.gfile.exists(f"{folder}{ending}") for ending in ("", ".index")):
        raise InputError(f"{source}: there is no such folder or checkpoint; name the folder of a model")
    return read_config(folder, source).replace(pooler=False)


def _check_settings_of_others(name, settings):
    defaults = DistillationSettings()
    for other, loss in DISTILLATION_LOSSES.items():
        for each in loss.own_settings if other != name else ():
            value = getattr(settings, each)
            if value != getattr(defaults, each):
                raise InputError(
                    f"`{each}={value}` has no meaning for `distillation={name}`, only for {other}; leave it out"
                )


def _check_model(config, whose):
    refuse_entities(config, "distil", whose)
    refuse_causal(config, "`objective=distil`", whose, "use another model")
    refuse_languages(config, "distil", whose)


def _unreached(encoder):
    """Returns the beginnings of the names of variables used only after the last queries, keys and values."""
    *before, (attention, feed_forward) = map(encoder.sub_layers_of, range(encoder.config.num_blocks))
    names, parts = [], ["output_dense", "distances"]
    if not before:
        names.append("encoder/relative_embeddings/")
    if encoder.config.norm_position == "post":
        parts.append("layer_norm")
    else:
        names.append("encoder/last_layer_norm/")
    if attention not in {each for each, _ in before}:
        names += [f"encoder/attention_layers/{attention}/{part}/" for part in parts]
    if feed_forward not in {each for _, each in before}:
        names.append(f"encoder/feed_forward_layers/{feed_forward}/")
    return names


def _head_size(config):
    return config.hidden_size // config.num_attention_heads
