"""A model that reads entity vectors where a text mentions entities (ERNIE; Zhang et al. 2019)."""

import dataclasses

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.mentions.known_entities import KnownEntities
from albert_tf.objectives.entity_prediction import EntityPrediction
from albert_tf.objectives.masked_lm import MaskedLM
from albert_tf.objectives.pretraining import Pretraining
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.settings import RARE, Settings, setting

ENTITY_VECTORS = "entity_vectors"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EntitySettings(Settings):
    entity_vectors: str = setting(
        "", "Folder of entities.txt and entity_vectors.npy, for objective=entities.", group=RARE
    )


class Entities(Pretraining):
    """The masked language model, and which entities are mentioned."""

    # Without data, and so without languages, there is a model of so many entities, but nothing to train.

    def __init__(
        self,
        config: AlbertConfig,
        masking: MaskingOptions,
        entities: KnownEntities | None,
        languages: tuple[str, ...] | None,
        **others,
    ):
        has_data = languages is not None
        if not config.num_entities or (has_data and entities is None):
            known = "was trained with" if config.num_entities else "is to know"
            raise InputError(
                f"`objective=entities` needs the entities that the model {known}; name the folder of their "
                f"entities.txt and entity_vectors.npy with `{ENTITY_VECTORS}`"
            )
        super().__init__(config, [MaskedLM(config, masking), EntityPrediction(config, entities)])
        self._known = entities
        # No packing knows how often an entity can be guessed; the loss measures it itself.
        self.blind_metric = None

    def make_model(self, **options):
        """Returns an `AlbertForPreTraining` with its entities assigned."""
        model = super().make_model(**options)
        if self._known is not None:
            model.encoder.entity_fusion.assign(self._known.vectors, self._known.trie)
        return model

    def identity(self):
        return {**super().identity(), **({"entities": self._known.sha256} if self._known else {})}
