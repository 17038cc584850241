"""RoBERTa and XLM-RoBERTa: positions counted from [PAD]'s id, and heads with a layer of their own."""

from albert_tf.base.errors import InputError, shorten
from albert_tf.config import AlbertConfig
from albert_tf.interchange.families.family import OWN_LAYER, Family, Found, Values, masked_lm_names
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.tokenizers.xlm_roberta import XLM_ROBERTA


class Roberta(Family):
    """The class of the encoder alone has a pooler, the others have none: only the weights tell."""

    class_prefix = "Roberta"
    prefix = "roberta."
    decoder = "lm_head.decoder."
    pretraining_heads = masked_lm_names("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
    text_head = OWN_LAYER
    choice_head = {"head/transform": "roberta.pooler.dense", "head/dense": "classifier"}
    has_gelu_in_masked_lm = True
    defaults = {**Family.defaults, "vocab_size": 50265}
    fixed = {"classification_head": "dense_tanh"}

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        fields = super().read_config(values, found, source)
        pad_id = values.get("pad_token_id", 1)
        if not isinstance(pad_id, int) or isinstance(pad_id, bool) or pad_id < 0:
            raise InputError(f"{source}: pad_token_id must be a whole number. Received: {shorten(pad_id)}")
        return {**fields, "position_offset": pad_id + 1, "pooler": self.has_pooler(found)}

    def computes(self, config: AlbertConfig) -> Values:
        return {**super().computes(config), "position_offset": config.position_offset, "pooler": config.pooler}

    def config_to_write(self, model: PortableModel) -> AlbertConfig:
        if not model.config.position_offset:
            raise InputError(
                f"`to=huggingface` can't express position_offset=0 of model_type={self.name}: its positions begin "
                "behind the id of [PAD]"
            )
        return super().config_to_write(model)


class XlmRoberta(Roberta):
    """RoBERTa with other names of classes, and a tokenizer of its own."""

    class_prefix = "XLMRoberta"
    sentencepiece = XLM_ROBERTA
