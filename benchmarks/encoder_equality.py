"""How far models of transformers, at the shapes of Korean ones, compute the same here: outputs and gradients.

python -m benchmarks.encoder_equality

Transformers makes each with random weights; it is converted, and both read pairs of three lengths, padded. The
differences are of float32 here from float64 there, as a share of the norm: of the logits, and of the gradient of each
variable, the largest. Beside them stands what transformers itself loses in float32. Needs what
requirements-references.txt names, and some 6 GB of memory.
"""

import copy
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import torch
import transformers
from absl import app, flags

from albert_tf.finetuning import Classification
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.families import family_named
from albert_tf.interchange.variables import entries
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables

FLAGS = flags.FLAGS

_ROBERTA = {"type_vocab_size": 1, "max_position_embeddings": 514, "pad_token_id": 1, "layer_norm_eps": 1e-5}
_SMALL = {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
MODELS = {
    "KLUE-RoBERTa-base": ("roberta", "Roberta", {"vocab_size": 32000, **_ROBERTA}),
    "KoELECTRA-small-v3": ("electra", "Electra", {"vocab_size": 35000, **_SMALL}),
    "KcBERT-base": ("bert", "Bert", {"vocab_size": 30000, "max_position_embeddings": 300}),
    "DistilKoBERT": ("distilbert", "DistilBert", {"vocab_size": 8002, "n_layers": 3}),
    "XLM-R base, 1,000 pieces": ("xlm-roberta", "XLMRoberta", {"vocab_size": 1000, **_ROBERTA}),
}
_LENGTHS, _NUM_LABELS = [[48], [31], [9]], 3

flags.DEFINE_list("only", [], "Names of the models; all if left out.")


def make_inputs(pad: int) -> dict[str, np.ndarray]:
    """Returns pairs of three lengths, int32 [3, S], padded with a model's own piece."""
    lengths, places = np.array(_LENGTHS), np.arange(_LENGTHS[0][0])
    ids = np.random.default_rng(2).integers(5, 1000, [len(lengths), len(places)])
    values = {
        "input_ids": np.where(places < lengths, ids, pad),
        "input_mask": places < lengths,
        "segment_ids": (lengths // 2 <= places) & (places < lengths),
    }
    return {name: value.astype(np.int32) for name, value in values.items()}


def run_theirs(model, inputs, weights, reads_segments):
    """Returns the logits, and the gradients by name, of a model of transformers in its own precision."""
    given = {"input_ids": inputs["input_ids"], "attention_mask": inputs["input_mask"]}
    if reads_segments:
        given["token_type_ids"] = inputs["segment_ids"]
    logits = model(**{name: torch.tensor(value).long() for name, value in given.items()}).logits
    (logits * logits.new_tensor(weights)).sum().backward()
    gradients = {name: value.grad.numpy() for name, value in model.named_parameters() if value.grad is not None}
    return logits.detach().numpy(), gradients


def run_ours(model, inputs, weights):
    """Returns the same of ours."""
    with tf.GradientTape() as tape:
        logits = model({name: tf.constant(value) for name, value in inputs.items()})["logits"]
        loss = tf.reduce_sum(logits * tf.constant(weights, tf.float32))
    variables = named_variables(model)
    gradients = tape.gradient(loss, list(variables.values()))
    return logits.numpy(), {
        name: tf.convert_to_tensor(value).numpy() for name, value in zip(variables, gradients) if value is not None
    }


def difference(found, expected):
    """Returns the norm of a difference as a share of the norm of what is expected."""
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def largest(pairs):
    """Returns the largest difference of gradients, by name of ours, and whose it is.

    A bias of keys adds the same to all scores of a query: its gradient is rounding, and is compared with that of its
    kernel, which comes before it.
    """
    found, norm_before = {}, 0.0
    for name, (mine, theirs) in pairs.items():
        norm = np.linalg.norm(theirs)
        scale = norm_before if name.endswith("key/bias") else norm
        found[name], norm_before = np.linalg.norm(mine - theirs) / scale, norm
    return max((value, name) for name, value in found.items())


def compare(family, class_prefix, sizes):
    """Returns the differences of logits and of gradients here, the variable of the latter, and theirs in float32."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{class_prefix}Config")(**sizes, num_labels=_NUM_LABELS)
    theirs = getattr(transformers, f"{class_prefix}ForSequenceClassification")(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
        theirs.save_pretrained(source)
        convert_checkpoint("huggingface", "albert_tf", source, target)
        ours = AlbertForSequenceClassification.from_pretrained(target, verbose=False)
    inputs = make_inputs(sizes.get("pad_token_id", 0))
    weights = np.random.default_rng(3).normal(size=[len(_LENGTHS), _NUM_LABELS])
    reads_segments = family in ("bert", "electra")
    exact_logits, exact = run_theirs(copy.deepcopy(theirs).double(), inputs, weights, reads_segments)
    their_logits, rounded = run_theirs(theirs, inputs, weights, reads_segments)
    our_logits, found = run_ours(ours, inputs, weights)
    about = family_named(family)
    named = {name.removeprefix(about.prefix): name for name in exact}
    mine, others = {}, {}
    for name, entry in entries(about.naming, ours.config, Classification, _NUM_LABELS).items():
        their_name = named.get(entry.name.removeprefix(about.prefix))
        if their_name is None or name not in found:
            continue
        value = found[name].T if entry.spelling.is_transposed else found[name].reshape(exact[their_name].shape)
        mine[name] = value, exact[their_name]
        others[name] = rounded[their_name], exact[their_name]
    return (
        difference(our_logits, exact_logits),
        *largest(mine),
        difference(their_logits, exact_logits),
        *largest(others),
    )


def main(_):
    print("| model | logits | gradients | of which | logits of transformers in float32 | gradients | of which |")
    print("|---|---|---|---|---|---|---|")
    for name, (family, class_prefix, sizes) in MODELS.items():
        if not FLAGS.only or name in FLAGS.only:
            cells = (each if isinstance(each, str) else f"{each:.1e}" for each in compare(family, class_prefix, sizes))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    app.run(main)
