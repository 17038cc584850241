"""The model that `albert_tf.load` returns, whatever the folder holds."""

import collections.abc
import typing
import warnings

import numpy as np

from albert_tf.asking.answers import (
    FIND_REPLACED,
    check_pooling,
    cosines,
    groups_of_one_length,
    normalized,
    pool,
    rows_of,
)
from albert_tf.asking.backend import Backend
from albert_tf.base.errors import InputError
from albert_tf.base.settings import check_whole
from albert_tf.base.texts import MASK, advice, list_inputs, read_strings, read_texts

# What a model may be asked.
ABILITIES = ("fill_mask", "generate", "score", "choose", "find_replaced", "encode", "similarity", "predict")


class Model:
    """A model to ask. What its folder holds decides which of these methods it has; the others raise one sentence.

    ```python
    model = albert_tf.load("models/albert_ko_small")
    model.fill_mask(["배우들의 연기가 정말 [MASK]."])  # for each text, for each [MASK], the most probable pieces
    model.encode(["정말 재밌어요", "시간이 아깝다"])  # float32 [2, H]
    albert_tf.load("run/nsmc").predict(["정말 재밌어요"])  # [{"label": "1", "probabilities": {"0": 0.02, "1": 0.98}}]
    ```

    Texts are read up to the length that the model reads; those that are longer are counted and warned of once.

    Attributes:
        backend: What computes.
        num_cut: How many of the inputs asked so far were longer than what is read of them.
        num_unknown: How many of them held a word that the vocabulary can't spell.
        learnt_to_compare: Whether the vectors of `encode` were taught which texts are alike.
        pooling: How `encode` and `similarity` make vectors where they aren't told.
        normalizes: Whether such vectors have length 1.
    """

    def __init__(self, backend: Backend):
        self.backend, self.num_cut, self.num_unknown = backend, 0, 0
        settings = backend.encoder_settings
        self.learnt_to_compare = "pooling" in settings
        self.pooling, self.normalizes = settings.get("pooling", "mean"), settings.get("normalize", False)

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int | None = None) -> list[typing.Any]:
        """Returns a prediction for each input, in order, as `do_predict` makes it.

        Args:
            inputs: Texts, or tuples of texts where the task reads pairs, as its `examples_of` takes them.
            batch_size: How many are computed at once; by default what suits the kind of model.

        Raises:
            InputError: An input is not what the task reads.
        """
        self._check("predict")
        examples = self.task.examples_of(list_inputs(inputs))
        if not examples:
            return []
        found = self.backend.predict(examples, batch_size)
        self._add(found.num_cut, found.unknown)
        return found.predictions

    def fill_mask(self, texts: collections.abc.Sequence[str], top_k: int = 5) -> list[typing.Any]:
        """Returns the most probable pieces for each "[MASK]" of each text.

        Args:
            texts: Each with a "[MASK]" or more, each of which stands for one piece of the vocabulary.
            top_k: How many pieces for each; every mask is guessed with all others masked. An export has ten.

        Returns:
            For each text, for each of its masks, `top_k` dictionaries, the most probable first: the "piece" as it
            stands in the vocabulary, the "text" that it stands for, and its "probability".

        Raises:
            InputError: A text has no mask, or one that is behind what the model reads; or `top_k` is no number of
                pieces.
        """
        self._check("fill_mask")
        texts, most = read_strings(texts), self.backend.most_guesses
        if not isinstance(top_k, int) or not 1 <= top_k <= most:
            raise InputError(f"top_k must be a whole number from 1 to {most}. Received: {top_k!r}")
        for number, text in enumerate(texts):
            if MASK not in text:
                raise InputError(f"input {number} has no {MASK}; write it where a piece is missing")
        rows = self._rows(texts, lambda some: self.backend.guess(some, top_k))
        for number, (text, row) in enumerate(zip(texts, rows)):
            if len(row["guesses"]) < text.count(MASK):
                raise InputError(
                    f"input {number}: a {MASK} lies beyond the {self.max_seq_length} pieces that it reads; shorten it"
                )
        self._add(*self.backend.count_masked(texts))
        return [
            [list(map(self._guess, *of_mask))[:top_k] for of_mask in zip(row["guesses"], row["probabilities"])]
            for row in rows
        ]

    def find_replaced(self, texts: collections.abc.Sequence[str]) -> list[list[dict[str, typing.Any]]]:
        """Returns how probable it is that each piece of each text was replaced, as ELECTRA's discriminator has learnt.

        ```python
        model.find_replaced(["오늘은 날씨가 맛있다"])  # [[{"piece": "오늘", "probability": ...}, ...]]
        ```

        Returns:
            For each text, for each of its pieces, a dictionary of the "piece" as it stands in the vocabulary, the
            "text" that it stands for, from character "begin" to "end", and its "probability".

        Raises:
            InputError: An input is no text, or has a "[MASK]".
        """
        self._check(FIND_REPLACED)
        texts = read_strings(texts)
        for number, text in enumerate(texts):
            if MASK in text:
                raise InputError(
                    f"input {number} has a {MASK}, which this model has never seen; write a word in its place"
                )
        self._add(*self.backend.count([(text,) for text in texts]))
        rows = self._rows(texts, lambda some: self.backend.compute(FIND_REPLACED, {"text": some}))
        names = ("pieces", "begins", "ends", "probabilities")
        return [
            [
                {"piece": piece, "text": text[begin:end], "begin": begin, "end": end, "probability": probability}
                for piece, begin, end, probability in zip(*(row[name] for name in names))
            ]
            for text, row in zip(texts, rows)
        ]

    def encode(self, texts: collections.abc.Sequence[str], pooling: str | None = None) -> np.ndarray:
        """Returns a vector of each text, float32 [N, H].

        Args:
            texts: N of them.
            pooling: "mean" for the average of the last states of a text's pieces, [CLS] and [SEP] left out; "all" for
                that with them; "first" for the state of [CLS], "last" for that of the last piece. A text without a
                piece has the state of [CLS]. None for "mean", or what a folder of sentence-transformers says.

        Raises:
            InputError: An input is no text, there is no such pooling, or it reads [CLS] of a causal model.
        """
        self._check("encode")
        normalizes, pooling = pooling is None and self.normalizes, pooling or self.pooling
        check_pooling(pooling, self.backend.is_causal)
        texts = read_strings(texts)
        self._add(*self.backend.count([(text,) for text in texts]))
        vectors = np.zeros([len(texts), self.backend.hidden_size], np.float32)
        for rows, states, mask in self.backend.encode(texts):
            vectors[rows] = pool(states, mask, pooling)
        return normalized(vectors) if normalizes else vectors

    def similarity(self, pairs: collections.abc.Sequence[tuple[str, str]], pooling: str | None = None) -> np.ndarray:
        """Returns how alike two texts are to the encoder: the cosine of their vectors, float32 [N], from -1 to 1.

        Args:
            pairs: N pairs of texts.
            pooling: As for `encode`.

        Raises:
            InputError: An input is no pair of texts.
        """
        self._check("similarity")
        texts = read_texts(list_inputs(pairs), reads_pairs=True)
        if not self.learnt_to_compare:
            warnings.warn(
                "this model was not taught which texts are alike, so the cosine of its vectors says little: it may be "
                "less than what counting shared pairs of characters gives; for scores of pairs, fine-tune it on some",
                stacklevel=2,
            )
        return cosines(self.encode([text for pair in texts for text in pair], pooling))

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
            InputError: A text is empty or has a "[MASK]", or there is no such method.
        """
        return self.answer(self.question("score", method=method), texts, batch_size)

    def choose(
        self,
        texts: collections.abc.Sequence[str],
        template: str,
        answers: collections.abc.Mapping[str, str],
        examples: collections.abc.Sequence[tuple[str, str]] = (),
        compare: str = "pmi",
        batch_size: int = 64,
    ) -> list[dict[str, typing.Any]]:
        """Returns the label of each text whose answer is the most probable one in a template: without any training.

        ```python
        model.choose(["시간이 아깝다"], "{text} 한마디로 {answer}", {"good": "재밌다", "bad": "재미없다"})
        # [{"label": "bad", "answers": {"good": {"score": ..., "per_character": ..., "pmi": ...}, "bad": {...}}}]
        ```

        Of an answer's pieces, and those behind them in the same word, as a josa, the log-probabilities are added up,
        given all else, as `score` does.

        Args:
            texts: N of them.
            template: With "{text}" and "{answer}" once each.
            answers: What stands for each label.
            examples: Texts with their labels, which stand in front of each text, in the same template.
            compare: What decides: "score", the sum; "per_character"; or "pmi", by default, how much more probable the
                answer is than without its text.
            batch_size: As for `score`.

        Raises:
            InputError: A place is missing, a text does not fit into the model with template and examples, or answers
                can't be told apart or spelt by the vocabulary.
        """
        options = {"template": template, "answers": answers, "examples": examples, "compare": compare}
        return self.answer(self.question("choose", **options), texts, batch_size)

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
            InputError: An input is no text, or leaves no room for what comes; or a setting is out of range.
        """
        options = {"max_pieces": max_pieces, "top_k": top_k, "top_p": top_p, "temperature": temperature}
        options |= {"seed": seed, "repetition_penalty": repetition_penalty}
        return self.answer(self.question("generate", **options), texts, batch_size)

    def question(self, ability: str, **options: typing.Any) -> typing.Any:
        """Returns "score", "choose" or "generate" with its options, checked, to be answered for texts again and again.

        Raises:
            InputError: An option is out of range, or the model lacks the ability.
        """
        self._check(ability)
        return self.backend.question(ability, **options)

    def answer(
        self, question: typing.Any, texts: collections.abc.Sequence[str], batch_size: int
    ) -> list[dict[str, typing.Any]]:
        """Returns the answers to what `question` returned, of texts."""
        check_whole("batch_size", batch_size, 1)
        texts = read_strings(texts)
        question.check(texts)
        self._add(0, self.backend.count([(text,) for text in texts])[1])
        return question.answer(texts, batch_size)

    @property
    def results(self) -> dict[str, typing.Any]:
        """The measures on held-out data, by name; empty where nothing was measured."""
        return self.backend.results

    @property
    def max_seq_length(self) -> int:
        """Longest input in pieces."""
        return self.backend.max_seq_length

    @property
    def model(self) -> typing.Any:
        """The Keras model of a folder; an export has none."""
        return self.backend.model

    @property
    def tokenizer(self) -> typing.Any:
        """The tokenizer of its texts; a LiteRT export has none of ours."""
        return self.backend.tokenizer

    @property
    def abilities(self) -> tuple[str, ...]:
        """Which of `ABILITIES` this model has."""
        return tuple(name for name in ABILITIES if name in self.backend.abilities)

    @property
    def task(self) -> typing.Any:
        """The task that it predicts for: a `FinetuningTask`, or a `TextTask` without TensorFlow; else InputError."""
        self._check("predict")
        return self.backend.task

    def cannot(self, ability: str) -> InputError:
        """Returns the error of a method that this model does not have."""
        return InputError(self.backend.refusal(ability))

    def __repr__(self):
        return f"<{type(self).__name__}: {self.backend.place} has {', '.join(self.abilities)}>"

    def _check(self, ability):
        if ability not in self.abilities:
            raise self.cannot(ability)

    def _rows(self, texts, compute):
        """Returns the row of each text, those of about one length computed at once."""
        found = [None] * len(texts)
        for rows in groups_of_one_length([len(text) for text in texts]):
            for row, of_text in zip(rows, rows_of(compute([texts[row] for row in rows]))):
                found[row] = of_text
        return found

    def _guess(self, piece, probability):
        text = self.tokenizer.decode([self.tokenizer.vocabulary.id_of(piece)])
        is_continuation = text == piece and text.startswith("##") and len(text) > 2
        return {"piece": piece, "text": text[2:] if is_continuation else text, "probability": probability}

    def _add(self, num_cut, unknown):
        """Counts inputs that are cut, or hold words that the vocabulary can't spell, and warns of the first ones."""
        num_unknown, words, characters = unknown
        if num_unknown and not self.num_unknown:
            warnings.warn(
                f"some inputs hold words that the vocabulary can't spell, such as {', '.join(words)}; the model reads "
                f"[UNK] in place of each, and num_unknown counts these inputs{advice(characters)}",
                stacklevel=3,
            )
        if num_cut:
            warnings.warn(
                f"some inputs are longer than the {self.max_seq_length} pieces that the model reads, and their ends "
                "are left out; num_cut of the model counts them",
                stacklevel=3,
            )
        self.num_cut, self.num_unknown = self.num_cut + num_cut, self.num_unknown + num_unknown
