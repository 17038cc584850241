"""The tokenizer as a Keras layer: raw strings to the model's inputs, inside a model or in tf.data."""

import base64
import os
import tempfile

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import read_bytes, write_bytes
from albert_tf.tokenization.base import Tokenizer, to_tensor
from albert_tf.tokenization.model_inputs import check_packing, pack_segments
from albert_tf.tokenization.tokenizer import load_tokenizer

PADDINGS = ("max_length", "longest")


@tf.keras.utils.register_keras_serializable("albert_tf")
class TokenizerLayer(tf.keras.layers.Layer):
    """Encodes texts as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`; the end of the longer text is cut off.

    ```python
    layer = TokenizerLayer(KoreanWordPieceTokenizer.load("vocabulary"), max_seq_length=128)
    layer(["나는 밥을 먹었다.", "정말?"])
    dataset.batch(32).map(lambda text, label: (layer(text), label))
    ```

    Its config holds the vocabulary, or the SentencePiece model, so a `.keras` file of a model that begins with this
    layer answers from raw strings by itself, once albert_tf.tokenization is imported.

    Args:
        tokenizer: Its vocabulary must hold the special tokens.
        max_seq_length: Longest input S in pieces, special tokens included.
        padding: "max_length": rows have S pieces; "longest": as many as the longest row of the batch.
        **kwargs: Of `tf.keras.layers.Layer`.

    Raises:
        InputError: A special token is missing, S has no room for them, or there is no such padding.
    """

    def __init__(self, tokenizer: Tokenizer, max_seq_length: int, padding: str = "max_length", **kwargs):
        super().__init__(**kwargs)
        check_packing(tokenizer.vocabulary, max_seq_length)
        if padding not in PADDINGS:
            raise InputError(f"padding must be one of {', '.join(PADDINGS)}. Received: {padding}")
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        self.padding = padding
        self.supports_jit = False  # XLA knows no strings
        self._resources = tokenizer.resources  # to be saved with a graph that uses them
        self.built = True

    def __call__(self, texts, text_pair=None, **kwargs):
        """Encodes as `call` does; strings of Python, for which Keras has no place, become tensors first."""
        # A second text that is not given is no argument, or Keras would look for a tensor in it.
        given = [text for text in (texts, text_pair) if text is not None]
        return super().__call__(*(_as_tensor(text) for text in given), **kwargs)

    def call(self, texts, text_pair=None):
        """Encodes N texts, or N pairs.

        Args:
            texts: string [N] or [N, 1], UTF-8: a tensor, an array or a list; or one string.
            text_pair: The second texts, like `texts`; or None.

        Returns:
            int32 [N, S] `input_ids`, `input_mask`, `segment_ids`.
        """
        given = [tf.reshape(text, [-1]) for text in (texts, text_pair) if text is not None]
        segments = [self.tokenizer.encode_ids(text) for text in given]
        pads_to_longest = self.padding == "longest"
        return pack_segments(segments, self.tokenizer.vocabulary, self.max_seq_length, pads_to_longest)

    def get_config(self):
        """Returns the constructor's arguments, the tokenizer as the content of its files in base64."""
        own = {"max_seq_length": self.max_seq_length, "padding": self.padding}
        return {**super().get_config(), "tokenizer": _to_files(self.tokenizer), **own}

    @classmethod
    def from_config(cls, config):
        """Builds a layer from its config.

        Raises:
            InputError: The tokenizer in it can't be used.
        """
        return cls(**{**config, "tokenizer": _from_files(config["tokenizer"])})


def _as_tensor(texts):
    if isinstance(texts, str):
        return to_tensor([texts])
    return to_tensor(texts) if isinstance(texts, (list, tuple)) else texts


def _to_files(tokenizer):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        content = {name: read_bytes(os.path.join(folder, name), "the tokenizer") for name in sorted(os.listdir(folder))}
    return {name: base64.b64encode(value).decode() for name, value in content.items()}


def _from_files(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if os.path.basename(name) != name:
                raise InputError(f"a tokenizer's file must have a name without folders. Received: {name}")
            write_bytes(os.path.join(folder, name), base64.b64decode(content))
        return load_tokenizer(folder)
