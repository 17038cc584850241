"""Asking one model in one way; used by benchmarks/serving.py, each time in a process of its own.

python -m benchmarks.contestants.answering saved_model served/nsmc/1 '{"texts": ["정말 재밌어요"]}'

Nothing is imported but what this way of asking needs, so that it can be timed from the start of the process, and runs
in an environment that has no more.
"""

import json
import os
import sys
import time

BATCH_SIZE = 32


def ask_saved_model(folder, imported):
    """Returns a function from texts to labels with probabilities: an exported model in TensorFlow.

    Args:
        folder: Of the model.
        imported: Called when all is imported.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for threads in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ.setdefault(threads, "1")  # of so small a model several wait for each other
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (the graph has its operations)

    imported()
    answer = tf.saved_model.load(folder).signatures["serving_default"]

    def ask(texts):
        outputs = answer(text=tf.constant(texts))
        return list(zip(map(bytes.decode, outputs["label"].numpy()), outputs["probability"].numpy().tolist()))

    return ask


def ask_litert(folder, imported):
    """Returns the same of a LiteRT export."""
    import albert_tf

    imported()
    predictor = albert_tf.load(folder)

    def ask(texts):
        return [(each["label"], each["probabilities"][each["label"]]) for each in predictor.predict(texts)]

    return ask


def ask_hugging_face(folder, imported):
    """Returns the same of Hugging Face's pipeline."""
    from transformers import pipeline

    imported()
    classify = pipeline("text-classification", model=folder, device="cpu")

    def ask(texts):
        found = classify(texts, batch_size=BATCH_SIZE, truncation=True)
        return [(each["label"], each["score"]) for each in found]

    return ask


def ask_hugging_face_model(folder, imported):
    """Returns the same of Hugging Face's fast tokenizer and model, called without the pipeline, in one thread."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    imported()
    torch.set_num_threads(1)  # of so small a model several wait for each other
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    labels = model.config.id2label

    def ask(texts):
        with torch.inference_mode():
            inputs = tokenizer(texts, return_tensors="pt", padding=True, truncation=True)
            found = model(**inputs).logits.softmax(-1).numpy()
        return [(labels[row.argmax()], float(row.max())) for row in found]

    return ask


def ask_keras_hub(folder, imported):
    """Returns the same of KerasHub's classifier and its `predict`.

    Its preprocessor has our tokenizer in it, for theirs knows SentencePiece alone; as theirs it pads every text to the
    model's length.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras_hub
    import numpy as np

    from albert_tf.interchange.tokenizers.files import OWN_SETTINGS_FILE
    from albert_tf.tokenization import TokenizerLayer, load_tokenizer

    imported()
    with open(os.path.join(folder, "head.json"), encoding="utf-8") as file:
        head = json.load(file)
    encode = TokenizerLayer(load_tokenizer(folder, OWN_SETTINGS_FILE), head["max_seq_length"])

    class Preprocessor(keras_hub.models.Preprocessor):
        def call(self, x, y=None, sample_weight=None):
            features = encode(x)
            names = {"token_ids": "input_ids", "padding_mask": "input_mask", "segment_ids": "segment_ids"}
            return {name: features[ours] for name, ours in names.items()}

    backbone = keras_hub.models.AlbertBackbone.from_preset(folder)
    labels = head["labels"]
    model = keras_hub.models.AlbertTextClassifier(backbone, len(labels), Preprocessor(), activation="softmax")
    model.output_dense.set_weights([np.array(head["kernel"]), np.array(head["bias"])])

    def ask(texts):
        found = model.predict(texts, batch_size=BATCH_SIZE, verbose=0)
        return [(labels[row.argmax()], float(row.max())) for row in found]

    return ask


WAYS = {
    "saved_model": ask_saved_model,
    "litert": ask_litert,
    "hugging_face": ask_hugging_face,
    "hugging_face_model": ask_hugging_face_model,
    "keras_hub": ask_keras_hub,
}


def timed(function, inputs, clock=time.perf_counter):
    """Returns how long each call took, in seconds."""
    seconds = []
    for value in inputs:
        start = clock()
        function(value)
        seconds.append(clock() - start)
    return seconds


def measure(way, folder, work):
    """Returns when all was imported, loaded and answered for the first time, and what the work asks for.

    Both in wall-clock and in CPU seconds of the process.

    Args:
        way: One of `WAYS`.
        folder: Of the model, as it is asked for so.
        work: `texts` to answer; and if it is there, `warm_up` and `requests` by name, lists of lists of texts to time.
    """
    moments, cpu_moments = {}, {}

    def note(name):
        moments[name], cpu_moments[name] = time.time(), time.process_time()

    ask = WAYS[way](folder, lambda: note("imported"))
    note("loaded")
    ask(work["texts"][:1])
    note("answered")
    results = {"moments": moments, "cpu_moments": cpu_moments, "answers": ask(work["texts"])}
    results |= {"seconds": {}, "cpu_seconds": {}}
    for name, requests in work.get("requests", {}).items():
        timed(ask, requests[: work["warm_up"]])
        results["seconds"][name] = timed(ask, requests)
        results["cpu_seconds"][name] = timed(ask, requests, time.process_time)
    return results


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:3], json.loads(sys.argv[3] if len(sys.argv) > 3 else sys.stdin.read()))))
