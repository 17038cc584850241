"""The same training step as other libraries write it: masked language model, AdamW, no dropout, given masked positions.

Each step takes the features of `benchmarks.train_step.make_batch`. Neither peer prunes the last block;
KerasHub has no sentence order head. Needs the packages of requirements-references.txt.
"""

import tensorflow as tf

from albert_tf.config import AlbertConfig

LEARNING_RATE = 1e-4
_WEIGHT_DECAY = 0.01


def keras_hub_backbone(config: AlbertConfig, dtype: str):
    """Returns KerasHub's `AlbertBackbone` of a config's shape, or its `DebertaV3Backbone` with `relative_attention`."""
    import keras_hub

    if config.relative_attention != "none":
        return keras_hub.models.DebertaV3Backbone(
            vocabulary_size=config.vocab_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            hidden_dim=config.hidden_size,
            intermediate_dim=config.intermediate_size,
            dropout=config.hidden_dropout_prob,
            max_sequence_length=config.longest_distance,
            bucket_size=config.position_buckets,
            dtype=dtype,
        )
    return keras_hub.models.AlbertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        embedding_dim=config.embedding_size,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        num_groups=config.num_hidden_groups,
        num_inner_repetitions=config.inner_group_num,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        dtype=dtype,
    )


def hugging_face_config(config: AlbertConfig, **more):
    """Returns Hugging Face's `AlbertConfig` of a config's shape."""
    import transformers

    values = {name: value for name, value in config.to_dict().items() if name in _HUGGING_FACE_FIELDS}
    return transformers.AlbertConfig(**{**values, "hidden_act": "gelu_new", **more})


def keras_hub_step(config: AlbertConfig, dtype: str, forward_only: bool = False):
    """Returns a function of a batch of tensors that trains KerasHub's `MaskedLM` of a config, and returns the loss."""
    import keras
    import keras_hub

    backbone = keras_hub_backbone(config, dtype)
    kind = "Albert" if config.relative_attention == "none" else "DebertaV3"
    model = getattr(keras_hub.models, f"{kind}MaskedLM")(backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    optimizer.build(model.trainable_variables)

    def loss_of(batch, training):
        inputs = {
            "token_ids": batch["input_ids"],
            "segment_ids": batch["segment_ids"],
            "padding_mask": batch["input_mask"],
            "mask_positions": batch["masked_lm_positions"],
        }
        logits = model({each.name: inputs[each.name] for each in model.inputs}, training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["masked_lm_ids"], tf.cast(logits, tf.float32))
        weights = batch["masked_lm_weights"]
        return tf.reduce_sum(losses * weights) / (tf.reduce_sum(weights) + 1e-5)

    def step(batch):
        if forward_only:
            return loss_of(batch, False)
        with tf.GradientTape() as tape:
            loss = loss_of(batch, True)
        variables = [variable.value for variable in model.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), model.trainable_variables))
        return loss

    return step


def hugging_face_step(config: AlbertConfig, dtype: str, forward_only: bool = False):
    """Returns a function of a batch of arrays that trains Hugging Face's `AlbertForPreTraining`; it returns the loss.

    bfloat16 is PyTorch's autocast. The model would score every position; here the masked ones are picked before the
    head, which spares it most of the head's work.
    """
    import torch
    import transformers

    model = transformers.AlbertForPreTraining(hugging_face_config(config))
    model.train(not forward_only)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=_WEIGHT_DECAY)

    def loss_of(batch):
        batch = {name: torch.as_tensor(values) for name, values in batch.items()}
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "mixed_bfloat16"):
            outputs = model.albert(batch["input_ids"].long(), batch["input_mask"].long(), batch["segment_ids"].long())
            positions = batch["masked_lm_positions"].long()[..., None].expand(-1, -1, config.hidden_size)
            logits = model.predictions(outputs.last_hidden_state.gather(1, positions))
            order_logits = model.sop_classifier(outputs.pooler_output)
        losses = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), batch["masked_lm_ids"].long().flatten(), reduction="none"
        )
        weights = batch["masked_lm_weights"].flatten()
        loss = (losses * weights).sum() / (weights.sum() + 1e-5)
        return loss + torch.nn.functional.cross_entropy(order_logits.float(), batch["sentence_order_labels"].long())

    def step(batch):
        if forward_only:
            with torch.no_grad():
                return float(loss_of(batch))
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        return float(loss)

    return step


_HUGGING_FACE_FIELDS = {
    "vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "num_hidden_groups",
    "inner_group_num",
    "initializer_range",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
}
