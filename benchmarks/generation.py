"""Times going on with texts: with cached keys and values, without, and by `generate` of transformers.

python -m benchmarks.generation --num_threads=1

The sizes are those of configs/gpt_small.json and configs/gpt_base.json. Transformers makes a GPT-2 with random weights,
ours is converted from it, all contestants take the most probable pieces, and they must take the same ones before
anything is timed. Prompts are random pieces, and no text ends early. Without a cache, the same compiled loop computes
the whole text again for each piece, as far as it goes so far: the text is cut after the next multiple of 32. Everything
is float32. Each contestant has a process of its own, and they take turns. Of each the median wall-clock and CPU time
(user and system, of all threads) are printed, and what ours takes of the others'. On a machine that is busy with
something else, CPU time with one thread is what to read. Compiling is left out, and printed apart. Needs what
requirements-references.txt names.
"""

import json
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_list("models", ["gpt_small", "gpt_base"], "Which configs.")
flags.DEFINE_list("only", ["cached", "whole", "transformers"], "Whom to time; the one with caches is always first.")
flags.DEFINE_list("batch_sizes", ["1", "8"], "Numbers of texts.")
flags.DEFINE_integer("num_threads", os.cpu_count(), "Threads of each.", 1)
flags.DEFINE_integer("rounds", 5, "How often everything is run, in turns.", 1)
flags.DEFINE_integer("prompt_length", 16, "Pieces of a prompt.", 1)
flags.DEFINE_integer("max_pieces", 128, "Pieces that come.", 1)

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"


def make_model(name, num_positions):
    """Returns a GPT-2 of transformers with random weights, of the size of a config."""
    import torch
    import transformers

    size = json.loads((CONFIGS / f"{name}.json").read_text())
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=size["vocab_size"],
        n_positions=max(num_positions, size["max_position_embeddings"]),
        n_embd=size["hidden_size"],
        n_layer=size["num_hidden_layers"],
        n_head=size["num_attention_heads"],
        n_inner=size["intermediate_size"],
        initializer_range=0.1,  # so that no two pieces are about as probable
        bos_token_id=2,
        eos_token_id=None,  # no text ends early
    )
    return transformers.GPT2LMHeadModel(config)


def make_prompts(vocab_size, batch_size, length):
    """Returns random pieces, int [B, length]."""
    return np.random.default_rng(0).integers(5, vocab_size, [batch_size, length])


def make_albert_tf(folder, work, has_caches):
    """Returns what goes on with prompts, and gives the pieces that come."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from albert_tf.base.compilation import compiled_whole
    from albert_tf.interchange.conversion import as_ours
    from albert_tf.modeling import AlbertForPreTraining
    from albert_tf.serving.decoder import Decoder, GenerationOptions, Prompts, rounded_length

    tf.config.threading.set_intra_op_parallelism_threads(work["num_threads"])
    tf.config.threading.set_inter_op_parallelism_threads(work["num_threads"])
    with as_ours(folder) as ours:
        model = AlbertForPreTraining.from_pretrained(ours.path, verbose=False)
    vocab_size, max_pieces = model.config.vocab_size, work["max_pieces"]
    may_come = np.arange(vocab_size) > 4
    decoder = Decoder(model, may_come, may_come, end_id=3)
    table = model.encoder.embeddings.word_embeddings

    def add_whole(ids, begin, count):
        """Takes so many pieces, each off the whole text, int32 [B, length]."""

        def add(place, ids):
            states = model.encoder({"input_ids": ids})["sequence_output"]
            logits = model.masked_lm_head(tf.gather(states, [place - 1], axis=1), tf.convert_to_tensor(table))[:, 0]
            pieces = tf.argmax(tf.where(may_come, logits, -1e30), axis=-1, output_type=tf.int32)
            return place + 1, tf.where(tf.range(ids.shape[1]) == place, pieces[:, None], ids)

        return tf.while_loop(lambda place, _: place < begin + count, add, (begin, ids))[1]

    add_whole = compiled_whole(add_whole)

    def cached(prompts):
        batch_size, length = prompts.shape
        ids = np.full([batch_size, rounded_length(length + max_pieces, model.config.longest_sequence)], 2, np.int32)
        ids[:, :length] = prompts
        lengths, limits = (np.full(batch_size, value, np.int32) for value in (length, max_pieces))
        asked = Prompts(ids, lengths, limits, np.zeros(batch_size, bool), np.zeros(ids.shape, np.float32))
        return decoder(asked, GenerationOptions(temperature=0))[0][:, length : length + max_pieces]

    def whole(prompts):
        ids, begin, end = np.asarray(prompts, np.int32), prompts.shape[1], prompts.shape[1] + max_pieces
        while begin < end:
            length = rounded_length(begin + 1, model.config.longest_sequence)
            count = min(length, end) - begin
            padded = np.pad(ids, [[0, 0], [0, length - ids.shape[1]]], constant_values=2)
            ids = add_whole(tf.constant(padded), tf.constant(begin), tf.constant(count)).numpy()
            begin += count
        return ids[:, prompts.shape[1] : end]

    return cached if has_caches else whole


def make_transformers(folder, work):
    """Returns the same of transformers, on PyTorch, which caches too."""
    import torch
    import transformers

    torch.set_num_threads(work["num_threads"])
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()

    def generate(prompts):
        ids = torch.tensor(prompts).long()
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=work["max_pieces"],
                do_sample=False,
                suppress_tokens=[0, 1, 2, 3, 4],
                pad_token_id=0,
            )
        return found[:, prompts.shape[1] :].numpy()

    return generate


MAKERS = {
    "cached": lambda folder, work: make_albert_tf(folder, work, has_caches=True),
    "whole": lambda folder, work: make_albert_tf(folder, work, has_caches=False),
    "transformers": make_transformers,
}


def serve(connection, contestant, folder, work):
    """Goes on with prompts that come, until None comes, and tells the pieces and how long they took."""
    generate = MAKERS[contestant](folder, work)
    while (prompts := connection.recv()) is not None:
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        found = generate(prompts)
        connection.send((found, time.perf_counter() - started_at, time.process_time() - cpu_started_at))


def measure(name, work):
    """Yields the number of texts, and (wall-clock, CPU) seconds of the first turn and the others, by contestant."""
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(name, work["prompt_length"] + work["max_pieces"])
        model.save_pretrained(folder)
        vocab_size = model.config.vocab_size
        del model
        connections = {}
        for contestant in FLAGS.only:
            connections[contestant], theirs = spawning.Pipe()
            spawning.Process(target=serve, args=(theirs, contestant, folder, work), daemon=True).start()
        for batch_size in map(int, FLAGS.batch_sizes):
            prompts = make_prompts(vocab_size, batch_size, work["prompt_length"])
            seconds, found = {contestant: [] for contestant in connections}, {}
            for _ in range(1 + FLAGS.rounds):
                for contestant, connection in connections.items():
                    connection.send(prompts)
                    found[contestant], *taken = connection.recv()
                    seconds[contestant].append(taken)
            check_same(found)
            yield batch_size, seconds
        for connection in connections.values():
            connection.send(None)


def check_same(found):
    """Stops where two contestants did not take the same pieces."""
    first, *others = found
    for other in others:
        if not np.array_equal(found[first], found[other]):
            raise SystemExit(f"they take other pieces: {first} and {other}")


def main(_):
    work = {name: FLAGS[name].value for name in ("num_threads", "prompt_length", "max_pieces")}
    print(f"float32, {FLAGS.num_threads} threads, {FLAGS.max_pieces} pieces after {FLAGS.prompt_length}\n")
    print("| model | texts | who | wall-clock, s | CPU, s | cached of that, CPU | with compiling, CPU, s |")
    print("|---|---|---|---|---|---|---|")
    for name in FLAGS.models:
        for batch_size, seconds in measure(name, work):
            medians = {
                contestant: [statistics.median(values) for values in zip(*taken[1:])]
                for contestant, taken in seconds.items()
            }
            for contestant, (wall, cpu) in medians.items():
                share = medians[FLAGS.only[0]][1] / cpu
                first = seconds[contestant][0][1]
                print(f"| {name} | {batch_size} | {contestant} | {wall:.2f} | {cpu:.2f} | {share:.2f} | {first:.1f} |")


if __name__ == "__main__":
    app.run(main)
