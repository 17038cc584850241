"""Named entities: a tag for each word or character, and spans of the text."""

from albert_tf.finetuning.ner.task import Entities

__all__ = ["Entities"]
