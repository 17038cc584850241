"""What a model can learn: one file each, and its line in `OBJECTIVES`."""

from albert_tf.objectives.albert_pretraining import AlbertPretraining
from albert_tf.objectives.answer_span import AnswerSpan
from albert_tf.objectives.conditional_answer_span import ConditionalAnswerSpan
from albert_tf.objectives.matching_halves import MatchingHalves
from albert_tf.objectives.objective import Objective

# By the names that the TPU planner takes. Each can be made from the model's config alone.
OBJECTIVES: dict[str, type[Objective]] = {"pretrain": AlbertPretraining, "halves": MatchingHalves}

__all__ = ["OBJECTIVES", "AlbertPretraining", "AnswerSpan", "ConditionalAnswerSpan", "MatchingHalves", "Objective"]
