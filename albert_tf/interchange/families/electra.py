"""ELECTRA: two networks with one config, a discriminator and the generator of its texts."""

from albert_tf.base.errors import InputError
from albert_tf.interchange.families.family import OWN_LAYER, Family, Names, Values, Variables, masked_lm_names
from albert_tf.interchange.huggingface_heads import class_in


class Electra(Family):
    """Its embeddings may be narrower than its layers, and it has no pooler."""

    class_prefix = "Electra"
    prefix = "electra."
    decoder = "generator_lm_head."
    pretraining_heads = {
        "replaced_token_head/transform": "discriminator_predictions.dense",
        "replaced_token_head/dense": "discriminator_predictions.dense_prediction",
        **masked_lm_names("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
    }
    text_head = OWN_LAYER
    choice_head = {"head/transform": "sequence_summary.summary", "head/dense": "classifier"}
    has_gelu_in_masked_lm = True
    defaults = {
        **Family.defaults,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    }
    fixed = {"pooler": False, "classification_head": "dense_gelu"}

    def encoder_names(self) -> Names:
        return {**super().encoder_names(), "encoder/embedding_hidden_mapping_in": "electra.embeddings_project"}

    def check_network(self, values: Values, found: Variables, config_file: str, source: str) -> list[str]:
        of_class = {"ElectraForMaskedLM": "generator", "ElectraForPreTraining": "discriminator"}
        is_there = [
            name for name in of_class.values() if any(each.startswith(f"{name}_predictions.") for each in found)
        ]
        name = class_in(values)
        meant = of_class.get(name)
        if is_there and meant and meant not in is_there:
            raise InputError(
                f"{config_file}: architectures={name} is a {meant} of ELECTRA, and {source} holds a "
                f"{is_there[0]}; put the files of one network together"
            )
        if "generator" not in is_there:
            return []
        return [
            "it is the generator of an ELECTRA, which guesses masked pieces; what is usually fine-tuned is the "
            "discriminator, which has a folder of its own"
        ]
