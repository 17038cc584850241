"""Times a step of fine-tuning and a prediction against Hugging Face on this machine's CPU, for BERT and ELECTRA.

python -m benchmarks.other_encoders --num_threads=1

The shapes are those of BERT-base, with the 32,000 pieces of KLUE, and of KoELECTRA-small-v3. Transformers makes models
with random weights, ours are converted from them, and both must answer the same before anything is timed. Everything is
float32. A step has dropout, AdamW and a norm that gradients are clipped to; ours is what the commands that fine-tune
run, for batches whose lengths differ, and Hugging Face's is run as it is and through torch.compile. A prediction goes
from ids to probabilities of one text, as `albert_tf.load(folder).predict` computes them, of a run or a LiteRT export.
Each contestant has a process of its own, and they take turns. Of each the median wall-clock and CPU time (user and
system, of all threads) are printed, and their share of Hugging Face's as it is. On a machine that is busy with
something else, CPU time with one thread is what to read: several threads of PyTorch use CPU time while they wait for
each other. Needs what requirements-references.txt names, torch.compile also g++.
"""

import collections
import multiprocessing
import os
import statistics
import tempfile
import time

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_list("models", ["bert", "electra"], "Which of the shapes.")
flags.DEFINE_list(
    "only",
    ["albert_tf", "albert_tf_litert", "hugging_face", "hugging_face_compiled"],
    "Whom to time, beside hugging_face.",
)
flags.DEFINE_integer("num_threads", os.cpu_count(), "Threads of each.", 1)
flags.DEFINE_integer("rounds", 10, "How often everything is run, in turns.", 1)
flags.DEFINE_integer("train_batch_size", 8, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Pieces of an example.", 8)

PREDICTED_LENGTHS = (32, 128)
_LEARNING_RATE, _WEIGHT_DECAY, _CLIP_NORM = 1e-6, 0.01, 1.0
# Predictions of one turn, which are short.
_PREDICTIONS = 10


def make_model(name):
    """Returns a classifier of transformers with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    if name == "bert":
        return transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=32000))
    config = transformers.ElectraConfig(
        vocab_size=35000, embedding_size=128, hidden_size=256, intermediate_size=1024, num_attention_heads=4
    )
    return transformers.ElectraForSequenceClassification(config)


def make_features(vocab_size, count, length):
    """Returns random texts without padding, and labels."""
    draws = np.random.default_rng(0)
    return {
        "input_ids": draws.integers(5, vocab_size, [count, length]).astype(np.int32),
        "input_mask": np.ones([count, length], np.int32),
        "segment_ids": np.zeros([count, length], np.int32),
        "label_ids": draws.integers(0, 2, [count]).astype(np.int32),
    }


def read_ours(folder, work):
    """Returns the task, model and training state of ours in TensorFlow, with the weights of transformers' model.

    Args:
        folder: Of transformers' model.
        work: The flags' values.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    import tensorflow as tf

    from albert_tf.finetuning import Classification
    from albert_tf.interchange.conversion import as_ours
    from albert_tf.modeling.layers import named_variables
    from albert_tf.modeling.pretrained import find_checkpoint, load_weights, read_config
    from albert_tf.training import RunSettings
    from albert_tf.training.devices import make_strategy
    from albert_tf.training.train_state import TrainState

    tf.config.threading.set_intra_op_parallelism_threads(work["num_threads"])
    tf.config.threading.set_inter_op_parallelism_threads(work["num_threads"])
    strategy = make_strategy()
    settings = RunSettings(
        num_train_steps=10**6,
        train_batch_size=work["train_batch_size"],
        learning_rate=_LEARNING_RATE,
        optimizer="adamw",
        weight_decay=_WEIGHT_DECAY,
        clip_norm=_CLIP_NORM,
    )
    with as_ours(folder) as ours:
        checkpoint = find_checkpoint(ours.path, "the model")
        task = Classification(read_config(checkpoint, "the model"))
        with strategy.scope():
            model = task.make_model()
            optimizer = settings.make_optimizer(named_variables(model))
        load_weights(checkpoint, named_variables(model))
    return task, model, TrainState.create(strategy, task, {"model": model}, optimizer)


def albert_tf_jobs(folder, work):
    """Returns what is timed of ours, by name; arguments as for `read_ours`."""
    task, model, state = read_ours(folder, work)
    import tensorflow as tf

    from albert_tf.finetuning.batches import Examples
    from albert_tf.training.batches import distribute_batches
    from albert_tf.training.evaluation import make_output_step
    from albert_tf.training.train_step import make_train_function

    features = make_features(task.config.vocab_size, work["train_batch_size"], work["max_seq_length"])
    dataset = Examples(features, task.batch_spec(None)).train_dataset(work["train_batch_size"], seed=0)
    iterator = iter(distribute_batches(state.strategy, dataset))
    train_steps = make_train_function(state, 0, tf.Variable(False, trainable=False))
    compute = make_output_step(state.strategy, lambda batch: task.outputs(batch, model))

    def predict(length):
        text = {name: tf.constant(values[:1, :length]) for name, values in features.items() if values.ndim == 2}
        return compute({**text, "example_weights": tf.ones([1])})[0]["probabilities"].numpy()

    return _with_predictions(predict, lambda: train_steps(iterator, tf.constant(1)))


def litert_jobs(folder, work):
    """Returns the predictions of ours as a LiteRT export, which can't learn; arguments as for `read_ours`."""
    from ai_edge_litert.interpreter import Interpreter

    task, model, _ = read_ours(folder, work)
    from albert_tf.asking.litert import run
    from albert_tf.serving.exporting import to_litert, trace_for_ids
    from albert_tf.serving.loading import TrainedModel

    trained = TrainedModel(model, None, work["max_seq_length"], task, folder, {})
    content = to_litert(trace_for_ids(trained), "float32")
    interpreter = Interpreter(model_content=content, num_threads=work["num_threads"])
    features = make_features(task.config.vocab_size, 1, work["max_seq_length"])
    texts = {name: values for name, values in features.items() if values.ndim == 2}
    return _with_predictions(
        lambda length: run(interpreter, {name: values[:, :length] for name, values in texts.items()})
    )


def hugging_face_jobs(folder, work, is_compiled=False):
    """Returns the same of transformers, on PyTorch."""
    import torch
    import transformers

    torch.set_num_threads(work["num_threads"])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    called = torch.compile(model) if is_compiled else model
    features = make_features(model.config.vocab_size, work["train_batch_size"], work["max_seq_length"])
    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    batch = {theirs: torch.as_tensor(features[ours]).long() for ours, theirs in names.items()}
    labels = torch.as_tensor(features["label_ids"]).long()

    def step():
        model.train()
        optimizer.zero_grad(set_to_none=True)
        called(**batch, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP_NORM)
        optimizer.step()

    def predict(length):
        model.eval()
        with torch.inference_mode():
            logits = called(**{name: values[:1, :length] for name, values in batch.items()}).logits
            return logits.softmax(-1).numpy()

    return _with_predictions(predict, step)


def _with_predictions(predict, step=None):
    jobs = {f"prediction, 1 of {length}": lambda length=length: predict(length) for length in PREDICTED_LENGTHS}
    return {**jobs, "step": step} if step else jobs


MAKERS = {
    "albert_tf": albert_tf_jobs,
    "albert_tf_litert": litert_jobs,
    "hugging_face": hugging_face_jobs,
    "hugging_face_compiled": lambda folder, work: hugging_face_jobs(folder, work, is_compiled=True),
}


def serve(connection, contestant, folder, work):
    """Does the jobs that come, and tells what they returned at first, and from then on how long they took.

    Args:
        connection: Where names of jobs come from, and None at the end.
        contestant: A key of `MAKERS`.
        folder: Of transformers' model.
        work: The flags' values.
    """
    jobs = MAKERS[contestant](folder, work)
    connection.send({name: job() for name, job in jobs.items() if name != "step"})
    for name in iter(connection.recv, None):
        count = 1 if name == "step" else _PREDICTIONS
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        for _ in range(count):
            jobs[name]()
        seconds = time.perf_counter() - started_at, time.process_time() - cpu_started_at
        connection.send([value / count for value in seconds])


def measure(model_name, work):
    """Returns (wall-clock, CPU) seconds of every turn, by job and contestant."""
    spawning = multiprocessing.get_context("spawn")
    seconds = collections.defaultdict(lambda: collections.defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        make_model(model_name).save_pretrained(folder)
        connections, processes, answers = {}, [], {}
        for contestant in FLAGS.only:
            connections[contestant], theirs = spawning.Pipe()
            process = spawning.Process(target=serve, args=(theirs, contestant, folder, work), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            answers[contestant] = connections[contestant].recv()
        check_same(answers)
        for turn in range(2 + FLAGS.rounds):
            for job in ("step", *answers[FLAGS.only[0]]):
                for contestant, connection in connections.items():
                    if job == "step" and contestant == "albert_tf_litert":
                        continue
                    connection.send(job)
                    taken = connection.recv()
                    if turn >= 2:
                        seconds[job][contestant].append(taken)
        for connection in connections.values():
            connection.send(None)
        for process in processes:
            process.join()
    return seconds


def check_same(answers):
    """Stops where two contestants do not answer the same."""
    first, *others = answers
    for other in others:
        for job, probabilities in answers[first].items():
            difference = np.abs(probabilities - answers[other][job]).max()
            if not difference < 1e-5:
                raise SystemExit(f"they differ by {difference} in {job}: {first} and {other}")


def main(_):
    work = {name: FLAGS[name].value for name in ("num_threads", "train_batch_size", "max_seq_length")}
    print(f"float32, {FLAGS.num_threads} threads, batch {FLAGS.train_batch_size} of {FLAGS.max_seq_length}\n")
    print("| model | what | who | wall-clock, ms | CPU, ms | share of Hugging Face's, wall-clock | CPU |")
    print("|---|---|---|---|---|---|---|")
    for model_name in FLAGS.models:
        for job, by_contestant in measure(model_name, work).items():
            medians = {
                contestant: [1000 * statistics.median(values) for values in zip(*taken)]
                for contestant, taken in by_contestant.items()
            }
            theirs = medians["hugging_face"]
            for contestant, (wall, cpu) in medians.items():
                shares = f"{wall / theirs[0]:.2f} | {cpu / theirs[1]:.2f}"
                print(f"| {model_name} | {job} | {contestant} | {wall:.1f} | {cpu:.1f} | {shares} |", flush=True)


if __name__ == "__main__":
    app.run(main)
