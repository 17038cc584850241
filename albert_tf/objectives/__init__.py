"""Objectives, the systems that a model can learn: a class each or a list of losses, and its line below."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.objectives.distillation import Distillation, DistillationSettings
from albert_tf.objectives.knowledge import Entities, EntitySettings
from albert_tf.objectives.language_models import CausalLM, MaskedLM, TranslationLM
from albert_tf.objectives.losses import NextSentence, SentenceOrder, composed
from albert_tf.objectives.matching_halves import MatchingHalves
from albert_tf.objectives.objective import Objective
from albert_tf.objectives.registry import (
    DEFAULT_OBJECTIVE,
    OBJECTIVES,
    check_packing,
    default_objective,
    make_objective,
    register,
    usual_objective,
    what_was_learnt,
)
from albert_tf.objectives.replaced_tokens import ElectraSettings, ReplacedTokens
from albert_tf.objectives.word_order import WordOrder

# Packings of running text, in one segment or two.
_TEXTS = ["full_sentences", "document_sentences", "order", "next"]

register(DEFAULT_OBJECTIVE, composed(MaskedLM, SentenceOrder), ["order"])
register("bert", composed(MaskedLM, NextSentence), ["next"])
register("roberta", composed(MaskedLM), _TEXTS)
register("electra", ReplacedTokens, _TEXTS, ElectraSettings)
register("halves", composed(MaskedLM, MatchingHalves), ["halves"])
register("causal", composed(CausalLM), ["document_blocks"])
register("distil", Distillation, [*_TEXTS, "halves"], DistillationSettings)
register("entities", Entities, _TEXTS, EntitySettings)
register("translation", composed(TranslationLM), ["translation_pairs"])
register("korealbert", composed(MaskedLM, SentenceOrder, WordOrder), ["order"])

__all__ = [
    "DEFAULT_OBJECTIVE",
    "OBJECTIVES",
    "Objective",
    "check_packing",
    "composed",
    "default_objective",
    "make_objective",
    "register",
    "usual_objective",
    "what_was_learnt",
]
