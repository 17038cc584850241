"""BERT, whose config may say that it is a decoder: no piece sees those after it, and no class of those has a pooler."""

import collections.abc
import typing

from albert_tf.config import AlbertConfig
from albert_tf.interchange.families.family import Family
from albert_tf.interchange.sentencepiece_files import KOBERT


class Bert(Family):
    """What `Family` says, and decoders."""

    fixed = {"model_type": "albert"}
    can_be_causal = True
    sentencepiece = KOBERT

    def read_config(
        self, values: dict[str, typing.Any], found: collections.abc.Container[str], source: str
    ) -> dict[str, typing.Any]:
        if values.get("is_decoder") is not True:
            return super().read_config(values, found, source)
        fields = super().read_config({**values, "is_decoder": False}, found, source)
        return {**fields, "is_causal": True, "pooler": self.has_pooler(found)}

    def write_config(self, config: AlbertConfig, common: dict[str, typing.Any]) -> dict[str, typing.Any]:
        return super().write_config(config, {**common, "is_decoder": True} if config.is_causal else common)

    def computes(self, config: AlbertConfig) -> dict[str, typing.Any]:
        return {**self.always, "pooler": config.pooler} if config.is_causal else self.always
