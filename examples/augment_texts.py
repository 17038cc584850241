"""Writes copies of texts in which a masked language model has put other words, for a teacher to label (TinyBERT).

    python examples/augment_texts.py --input_file=texts.txt --output_file=augmented.tsv
    python run_classifier.py --task_name=nsmc ... --teacher=run/large --unlabelled_file=augmented.tsv

The input has a text a line. In each copy some words get another stem, one after another: the first piece of the word is
masked, the rest stays in sight, and one of the pieces that the model fills in is drawn as often as it is probable.
Marks, numbers and words that the vocabulary can't spell stay.
"""

import argparse
import functools

import numpy as np

import albert_tf

NUM_CANDIDATES = 15
LINES_AT_ONCE = 500


def make_copies(model, lines, num_copies, replaced_share, generator):
    """Returns `num_copies` copies of each of some lines, as lists of words that may equal each other and their line."""
    copies = [line.split() for line in lines for _ in range(num_copies)]
    places = [list(np.flatnonzero(generator.random(len(words)) < replaced_share)) for words in copies]
    stem_of = functools.cache(lambda word: "".join(model.tokenizer.tokenize(word)[:1]))
    while any(places):
        asked = []
        for words, left in zip(copies, places):
            if left:
                place = left.pop(0)
                stem = stem_of(words[place])
                # Neither a mark nor [UNK], and written as in the vocabulary.
                if stem.isalpha() and words[place].startswith(stem):
                    asked.append((words, place, stem))
        found = model.fill_mask([mask_stem(*each, model.max_seq_length) for each in asked], top_k=NUM_CANDIDATES)
        for (words, place, stem), (guesses, *_) in zip(asked, found):
            guesses = [each for each in guesses if each["piece"].isalpha() and each["piece"] != stem]
            if guesses:
                probabilities = np.array([each["probability"] for each in guesses])
                chosen = guesses[generator.choice(len(guesses), p=probabilities / probabilities.sum())]
                words[place] = chosen["text"] + words[place][len(stem) :]
    return copies


def mask_stem(words, place, stem, max_seq_length):
    """Returns a text with a mask for the beginning of a word, and as much around it as the model surely reads."""
    room = (max_seq_length - 3) // 2
    before, behind = "".join(f"{word} " for word in words[:place]), words[place][len(stem) :]
    return before[-room:] + "[MASK]" + " ".join([behind, *words[place + 1 :]])[:room]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input_file", required=True, help="texts, one a line")
    parser.add_argument("--output_file", required=True, help="table to write, with the column document")
    parser.add_argument("--model_dir", default="models/albert_ko_small", help="a model that can fill masks")
    parser.add_argument("--num_copies", type=int, default=30, help="copies of each text, as in TinyBERT")
    parser.add_argument("--replaced_share", type=float, default=0.4, help="probability that a word is replaced")
    parser.add_argument("--random_seed", type=int, default=0, help="another one gives other copies")
    given = parser.parse_args()
    with open(given.input_file, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    model, generator = albert_tf.load(given.model_dir), np.random.default_rng(given.random_seed)
    texts = {" ".join(line.split()) for line in lines}
    seen = set(texts)
    with open(given.output_file, "w", encoding="utf-8") as file:
        file.write("document\n")
        for begin in range(0, len(lines), LINES_AT_ONCE):
            some = lines[begin : begin + LINES_AT_ONCE]
            copies = make_copies(model, some, given.num_copies, given.replaced_share, generator)
            new = [copy for copy in dict.fromkeys(map(" ".join, copies)) if copy not in seen]
            seen.update(new)
            file.writelines(f"{copy}\n" for copy in new)
            print(f"{begin + len(some):,} of {len(lines):,} texts, {len(seen) - len(texts):,} copies", flush=True)


if __name__ == "__main__":
    main()
