"""A pre-trained folder as a Python object: what is missing in texts, how probable they are, what comes after them."""

import collections.abc
import functools
import os
import typing
import warnings

import numpy as np
import tensorflow as tf

from albert_tf.asked_texts import list_inputs, read_strings
from albert_tf.errors import InputError
from albert_tf.exports import rows_of
from albert_tf.generation import GenerationOptions, TextGenerator
from albert_tf.generation.options import check_whole
from albert_tf.generation.text_generator import POSITIONS, count_stopped
from albert_tf.serving.encoder_model import (
    INPUT_NAMES,
    EncoderModel,
    check_masked,
    check_masks_are_read,
    count_cut_masked,
    describe_guess,
    groups_of_one_length,
    traced_once,
)
from albert_tf.serving.loading import load_trained
from albert_tf.serving.pretrained_abilities import lacking_abilities, why_lacking
from albert_tf.serving.replaced_pieces import find_replaced
from albert_tf.serving.scoring import choosing
from albert_tf.serving.scoring.queries import cut_texts
from albert_tf.serving.scoring.scorer import Scorer, check_scorable
from albert_tf.serving.scoring.template import Template
from albert_tf.serving.signatures import make_signatures
from albert_tf.serving.signatures.pretrained import FIND_REPLACED
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK


class PretrainedModel(EncoderModel):
    """Tokenizer and model of a folder that was pre-trained, or whose head can't be used.

    ```python
    model = albert_tf.load("models/albert_ko_small")
    model.fill_mask(["배우들의 연기가 정말 [MASK]."])  # for each text, for each [MASK], the most probable pieces
    model.encode(["정말 재밌어요", "시간이 아깝다"])  # float32 [2, H]
    ```

    Args:
        folder: The `output_dir` of run_pretraining.py, or a published model.
        place: What errors call the folder; by default as it is called.
        why_no_head: Why the folder has no head of a task that could be used, if it has one.

    Raises:
        InputError: The folder holds no model.
    """

    def __init__(self, folder: str | os.PathLike, place: str | None = None, why_no_head: str | None = None):
        loaded = load_trained(folder, "albert_tf.load")
        super().__init__(loaded, place or os.fspath(folder))
        self._why_no_head, self._loaded = why_no_head, loaded
        self._guesses = traced_once(
            lambda batch: tf.nn.softmax(self.model(batch)["masked_lm_logits"]), (*INPUT_NAMES, "masked_lm_positions")
        )

    def fill_mask(self, texts: collections.abc.Sequence[str], top_k: int = 5) -> list[typing.Any]:
        """Returns the most probable pieces for each "[MASK]" of each text.

        Args:
            texts: Each with a "[MASK]" or more, each of which stands for one piece of the vocabulary.
            top_k: How many pieces for each; every mask is guessed with all others masked.

        Returns:
            For each text, for each of its masks, `top_k` dictionaries, the most probable first: the "piece" as it
            stands in the vocabulary, the "text" that it stands for, and its "probability".

        Raises:
            InputError: A text has no mask, or one that is behind what the model reads; or `top_k` is no number of
                pieces.
        """
        if not self._loaded.guesses_pieces:
            raise self.cannot("fill_mask")
        texts = read_strings(texts)
        check_masked(texts, top_k, len(self.tokenizer.vocabulary))
        counts = np.array([text.count(MASK) for text in texts])
        self.add_unknown(*find_unknown_words(self.tokenizer, [tuple(text.split(MASK)) for text in texts]))
        found = [[] for _ in texts]
        for rows in groups_of_one_length(np.array([len(text) for text in texts])):
            batch, positions = self._encode_masked([texts[row] for row in rows], counts[rows], rows)
            guesses = self._guesses({**batch, "masked_lm_positions": positions}).numpy()
            for row, of_text, count in zip(rows, guesses, counts[rows]):
                found[row] = [self._best(each, top_k) for each in of_text[:count]]
        if texts:
            self.add_cut(count_cut_masked(self.tokenizer, texts, self.max_seq_length))
        return found

    def score(
        self, texts: collections.abc.Sequence[str], method: str | None = None, batch_size: int = 64
    ) -> list[dict[str, typing.Any]]:
        """Returns how probable each text is: the sum of the log-probabilities of its pieces.

        Of a masked model it is a pseudo-log-likelihood: each piece is masked, and read off the rest of the text. A
        model that was pre-trained to tell the next piece reads each off those before it, the first off [CLS], with
        which documents begin; the end of the text does not count. Special tokens are neither masked nor scored. Of a
        text that is longer than the model reads, each piece is read off as many around it as there is room for, or off
        at least half as many before it.

        Args:
            texts: N of them.
            method: Of a masked model, what is masked with a piece: "within_word", by default, the later pieces of the
                same word; "piece", nothing. Punctuation is no part of a word.
            batch_size: How many inputs are computed at once: of a masked model each has one piece that is scored.

        Returns:
            Dictionaries of the "score" in nats; the score "per_character", of the text as it is given with the spaces
            inside it; "num_characters" and "num_pieces"; and "num_unknown", how many words the vocabulary can't spell:
            such a word is read as [UNK] and scored as that, whatever it says.

        Raises:
            InputError: A text is empty or has a "[MASK]", there is no such method, or this model was not trained to
                tell how probable pieces are.
        """
        if not self._loaded.scores_texts:
            raise self.cannot("score")
        method = self.scorer.check_method(method)
        check_whole("batch_size", batch_size, 1)
        texts = read_strings(texts)
        check_scorable(self.tokenizer, texts)
        pieces = cut_texts(self.tokenizer, texts)
        found = self.scorer.score(texts, pieces, method, batch_size)
        has_unknown = np.array([each["num_unknown"] > 0 for each in found], bool)
        self.add_unknown(*find_unknown_words(self.tokenizer, [(text,) for text in texts], has_unknown))
        return found

    def choose(
        self,
        texts: collections.abc.Sequence[str],
        template: str,
        answers: collections.abc.Mapping[str, str],
        examples: collections.abc.Sequence[tuple[str, str]] = (),
        compare: str = choosing.PMI,
        batch_size: int = 64,
    ) -> list[dict[str, typing.Any]]:
        """Returns the label of each text whose answer is the most probable one in a template: without any training.

        ```python
        model.choose(["시간이 아깝다"], "{text} 한마디로 {answer}", {"good": "재밌다", "bad": "재미없다"})
        # [{"label": "bad", "answers": {"good": {"score": ..., "per_character": ..., "pmi": ...}, "bad": {...}}}]
        ```

        Of an answer's pieces, and those behind them in the same word, as a josa, the log-probabilities are added up,
        given all else; see `score`.

        Args:
            texts: N of them.
            template: With "{text}" and "{answer}" once each.
            answers: What stands for each label.
            examples: Texts with their labels, which stand in front of each text, in the same template.
            compare: What decides: "score", the sum; "per_character"; or "pmi", by default, how much more probable the
                answer is than without its text.
            batch_size: As for `score`.

        Raises:
            InputError: A place is missing, a text does not fit into the model with template and examples, answers can't
                be told apart or spelt by the vocabulary, or the model has no `score`.
        """
        if not self._loaded.scores_texts:
            raise self.cannot("choose")
        template = Template(template, answers, list_inputs(examples))
        if self.scorer.is_causal:
            template.check_causal()
        choosing.check_comparison(compare)
        check_whole("batch_size", batch_size, 1)
        texts = read_strings(texts)
        choosing.check_fits(self.tokenizer, texts, template, self.max_seq_length)
        if warning := choosing.describe_unknown(self.tokenizer, template):
            warnings.warn(warning, stacklevel=2)
        self.add_unknown(*find_unknown_words(self.tokenizer, [(text,) for text in texts]))
        return choosing.choose(self.scorer, self.tokenizer, texts, template, compare, batch_size)

    def generate(
        self,
        texts: collections.abc.Sequence[str],
        max_pieces: int = 64,
        top_k: int | None = None,
        top_p: float | None = None,
        temperature: float = 1.0,
        seed: int = 0,
        repetition_penalty: float = 1.0,
        batch_size: int = 16,
    ) -> list[dict[str, typing.Any]]:
        """Returns each text with what comes after it, as documents of the pre-training data go on.

        ```python
        model.generate(["이 영화는"], top_p=0.9)  # [{"text": "이 영화는 ...", "continuation": " ...", ...}]
        ```

        A text that breaks off inside a word may go on with the rest of it; after a space a new word begins. What is
        drawn follows from the seed and the text, whatever else is asked; another seed gives another continuation.

        Args:
            texts: N of them; "" for a document from its beginning.
            max_pieces: Most pieces that come. A text also ends where the document does, and at the model's last
                position.
            top_k: Draw each piece from so many of the most probable ones; 1 takes the most probable one (greedy).
            top_p: Draw from the fewest pieces that together have this probability.
            temperature: Below 1, probable pieces are drawn more often; 0 takes the most probable one (greedy).
            seed: Of what is drawn.
            repetition_penalty: Above 1, pieces that the text already holds become less probable.
            batch_size: How many texts are computed at once, at most.

        Returns:
            Dictionaries of the whole "text", the "continuation" alone, its "num_pieces", and what it was "stopped_by":
            "document" where the model ended the text, "max_pieces", or "positions", where the model has no more.

        Raises:
            InputError: An input is no text, or leaves no room for what comes; a setting is out of range; or the model
                has not learnt what comes next.
        """
        if not self._loaded.goes_on:
            raise self.cannot("generate")
        options = GenerationOptions(max_pieces, repetition_penalty, temperature, top_k, top_p, seed)
        check_whole("batch_size", batch_size, 1)
        texts = read_strings(texts)
        self.add_unknown(*find_unknown_words(self.tokenizer, [(text,) for text in texts]))
        answers = self._generator.generate(texts, options, batch_size)
        if count := count_stopped(answers, POSITIONS):
            warnings.warn(
                f"{count} of {len(texts)} texts stop before max_pieces={max_pieces}, at the last of the model's "
                f"{self.max_seq_length} positions",
                stacklevel=2,
            )
        return answers

    def find_replaced(self, texts: collections.abc.Sequence[str]) -> list[list[dict[str, typing.Any]]]:
        """Returns how probable it is that each piece of each text was replaced, as ELECTRA's discriminator has learnt.

        ```python
        model.find_replaced(["오늘은 날씨가 맛있다"])  # [[{"piece": "오늘", "probability": ...}, ...]]
        ```

        Args:
            texts: N of them; the ends of those that are longer than `max_seq_length` are left out.

        Returns:
            For each text, for each of its pieces, a dictionary of the "piece" as it stands in the vocabulary, the
            "text" that it stands for, from character "begin" to "end", and its "probability".

        Raises:
            InputError: An input is no text, or has a "[MASK]"; or the model is no discriminator, or lacks its head.
        """
        if not self._loaded.finds_replaced:
            raise self.cannot("find_replaced")
        return find_replaced(self, texts, self._ask_replaced)

    @property
    def task(self) -> typing.NoReturn:
        """Raises an InputError that says what to do: this model was not fine-tuned for a task."""
        raise self.cannot("predict")

    @property
    def abilities(self) -> tuple[str, ...]:
        lacking = lacking_abilities(self._loaded)
        return tuple(name for name in super().abilities if name not in lacking)

    def check_room(self, texts: list[str]) -> None:
        """Checks that there is room for what comes after texts; raises InputError if not; see `generate`."""
        self._generator.check_room(texts)

    @functools.cached_property
    def scorer(self) -> Scorer:
        """What scores pieces of texts.

        Raises:
            InputError: The vocabulary lacks a special token that inputs need.
        """
        return Scorer(self.model, self.tokenizer, self.max_seq_length, self._loaded.predicts_next)

    @functools.cached_property
    def _replaced(self):
        return make_signatures(self._loaded).trace_one(FIND_REPLACED)

    def _ask_replaced(self, texts):
        outputs = self._replaced(tf.constant(texts))
        return rows_of({name: values.numpy() for name, values in outputs.items()})

    @functools.cached_property
    def _generator(self):
        return TextGenerator(self.model, self.tokenizer)

    def _described(self):
        return f"{self._place}, which was pre-trained,"

    def cannot(self, ability: str) -> InputError:
        if why := why_lacking(self._loaded, ability):
            return InputError(f"{self._place} {why}; it has {', '.join(self.abilities)}")
        if self._why_no_head:
            return InputError(f"{self._place} has a head that can't be used for prediction: {self._why_no_head}")
        return InputError(
            f"{self._place} was pre-trained and not fine-tuned: in Python use {' and '.join(self.abilities[:2])}; "
            "to classify texts and the like, fine-tune it, by albert_tf.fit or run_classifier.py --init_checkpoint"
        )

    def _encode_masked(self, texts, counts, rows):
        """Returns the inputs of some texts, int32 [T, S] by name, and where their masks stand, int32 [T, M]."""
        batch, positions = self._inputs.encode_masked(tf.constant(texts))
        for row, count, found in zip(rows, counts, positions.row_lengths().numpy()):
            check_masks_are_read(row, count, found, self.max_seq_length)
        return {name: values.numpy().copy() for name, values in batch.items()}, positions.to_tensor().numpy()

    def _best(self, probabilities, top_k):
        ids = np.argsort(-probabilities, kind="stable")[:top_k]
        return [describe_guess(self.tokenizer, int(each), probabilities[each]) for each in ids]
