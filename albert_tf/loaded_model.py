"""What `albert_tf.load` returns, whatever the folder holds; nothing here imports TensorFlow."""

import abc
import collections.abc
import typing
import warnings

import numpy as np

from albert_tf.asked_texts import list_inputs, read_texts
from albert_tf.errors import InputError
from albert_tf.lacking_characters import advice

# What a model may be asked.
ABILITIES = ("fill_mask", "generate", "score", "choose", "find_replaced", "encode", "similarity", "predict")


class LoadedModel(abc.ABC):
    """A model to ask. Its kind says which of these methods it has; the others raise one sentence that says so.

    Attributes:
        results: What was measured on held-out data, by name; empty where nothing was.
        task: Of a model that predicts, what it reads: a `FinetuningTask`, or a `TextTask` without TensorFlow.
        max_seq_length: Longest input in pieces.
        num_cut: How many of the inputs asked so far were longer than what is read of them.
        num_unknown: How many of them held a word that the vocabulary can't spell.
        learnt_to_compare: Whether the vectors of `encode` were taught which texts are alike.
        pooling: How `encode` and `similarity` make vectors where they aren't told.
        normalizes: Whether such vectors have length 1.
    """

    results: dict[str, typing.Any]
    task: typing.Any
    max_seq_length: int
    num_cut: int
    num_unknown: int = 0
    learnt_to_compare: bool = False
    pooling: str = "mean"
    normalizes: bool = False

    def fill_mask(self, texts: collections.abc.Sequence[str], top_k: int = 5) -> list[typing.Any]:
        """Returns the most probable pieces for each "[MASK]" of each text; see `PretrainedModel.fill_mask`."""
        raise self.cannot("fill_mask")

    def score(
        self, texts: collections.abc.Sequence[str], method: str | None = None, batch_size: int = 64
    ) -> list[dict[str, typing.Any]]:
        """Returns how probable each text is; see `PretrainedModel.score`."""
        raise self.cannot("score")

    def choose(
        self,
        texts: collections.abc.Sequence[str],
        template: str,
        answers: collections.abc.Mapping[str, str],
        examples: collections.abc.Sequence[tuple[str, str]] = (),
        compare: str = "pmi",
        batch_size: int = 64,
    ) -> list[dict[str, typing.Any]]:
        """Returns which of several answers fits each text, without training; see `PretrainedModel.choose`."""
        raise self.cannot("choose")

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
        """Returns each text with what comes after it; see `PretrainedModel.generate`."""
        raise self.cannot("generate")

    def find_replaced(self, texts: collections.abc.Sequence[str]) -> list[list[dict[str, typing.Any]]]:
        """Returns how probable it is that each piece was replaced; see `PretrainedModel.find_replaced`."""
        raise self.cannot("find_replaced")

    def encode(self, texts: collections.abc.Sequence[str], pooling: str | None = None) -> np.ndarray:
        """Returns a vector of each text, float32 [N, H]; see `EncoderModel.encode`."""
        raise self.cannot("encode")

    def predict(self, inputs: collections.abc.Sequence[typing.Any], batch_size: int = 64) -> list[typing.Any]:
        """Returns a prediction for each input, in order; see `Predictor.predict`."""
        raise self.cannot("predict")

    def similarity(self, pairs: collections.abc.Sequence[tuple[str, str]], pooling: str | None = None) -> np.ndarray:
        """Returns how alike two texts are to the encoder: the cosine of their vectors, float32 [N], from -1 to 1.

        Args:
            pairs: N pairs of texts.
            pooling: As for `encode`.

        Raises:
            InputError: An input is no pair of texts, or this model gives no vectors.
        """
        if "similarity" not in self.abilities:
            raise self.cannot("similarity")
        texts = read_texts(list_inputs(pairs), reads_pairs=True)
        if not self.learnt_to_compare:
            warnings.warn(
                "this model was not taught which texts are alike, so the cosine of its vectors says little: it may be "
                "less than what counting shared pairs of characters gives; for scores of pairs, fine-tune it on some",
                stacklevel=2,
            )
        if not texts:
            return np.zeros([0], np.float32)
        vectors = self.encode([text for pair in texts for text in pair], pooling).reshape(len(texts), 2, -1)
        products = np.einsum("nth,nuh->ntu", vectors, vectors)  # of a text with itself too, so that equals give 1
        lengths = np.sqrt(products[:, 0, 0] * products[:, 1, 1])
        return (products[:, 0, 1] / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)

    def add_cut(self, num_cut: int) -> None:
        """Counts inputs that were longer than what is read of them, and warns of it once in a process."""
        self.num_cut += num_cut
        if num_cut:
            warnings.warn(
                f"some inputs are longer than the {self.max_seq_length} pieces that the model reads, and their ends "
                "are left out; num_cut of the model counts them",
                stacklevel=3,
            )

    def add_unknown(
        self, num_unknown: int, words: collections.abc.Sequence[str], characters: collections.abc.Sequence[str]
    ) -> None:
        """Counts inputs with words that the vocabulary can't spell, and warns once of the first ones, and of why."""
        if num_unknown and not self.num_unknown:
            warnings.warn(
                f"some inputs hold words that the vocabulary can't spell, such as {', '.join(words)}; the model reads "
                f"[UNK] in place of each, and num_unknown counts these inputs{advice(characters)}",
                stacklevel=3,
            )
        self.num_unknown += num_unknown

    def take_encoder_settings(self, settings: collections.abc.Mapping[str, typing.Any]) -> None:
        """Takes what encoder_settings.json says of vectors."""
        self.learnt_to_compare = "pooling" in settings
        self.pooling, self.normalizes = settings.get("pooling", "mean"), settings.get("normalize", False)

    @property
    def abilities(self) -> tuple[str, ...]:
        """Which of `ABILITIES` this model has."""
        own = [name for name in ABILITIES if getattr(type(self), name) is not getattr(LoadedModel, name)]
        return tuple(name for name in ABILITIES if name in own or (name == "similarity" and "encode" in own))

    def __repr__(self):
        return f"<{type(self).__name__}: {self._described()} has {', '.join(self.abilities)}>"

    def cannot(self, ability: str) -> InputError:
        """Returns the error of a method that this model does not have."""
        return InputError(f"{self._described()} has no {ability}; it has {', '.join(self.abilities)}")

    @abc.abstractmethod
    def _described(self) -> str:
        """Returns which model this is, as in "served/nsmc, an export,"."""
