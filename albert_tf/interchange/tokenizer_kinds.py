"""The kinds of tokenizers of Hugging Face that ours can be, and the settings with which they give the same ids."""

import collections.abc
import typing

from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

MAX_CHARACTERS = "max_input_chars_per_word"


class Kind(typing.NamedTuple):
    """A kind of tokenizer that ours can be."""

    classes: tuple[str, ...]  # that are it; the first one where files name none
    only: dict[str, tuple]  # keys of tokenizer_config.json, and the values that do what ours does; None always does
    read: tuple[str, ...] = ()  # keys that are looked at
    files: tuple[str, ...] = ()  # what its SentencePiece models alone are called
    # Makes our tokenizer, and sentences on it, of a model's path, its folder, `ReadOptions`, what tokenizer_config.json
    # says (maybe nothing), and the library that reads it; an InputError if they can't be used or disagree.
    reader: collections.abc.Callable[..., tuple[typing.Any, tuple[str, ...]]] | None = None
    # Whether that reads a tokenizer.json, too, alone (then the model's path is None) or beside the model.
    checks_json: bool = False
    # Special tokens that the fast tokenizer alone looks for in normalised text; XLM-RoBERTa's unless said otherwise.
    in_normalized: tuple[str, ...] = ("<mask>",)


# Classes that do what tokenizer.json says.
BY_FILE = ("PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer")

# Keys that any of them may have.
OF_ALL = {"additional_special_tokens": ([],), "extra_special_tokens": ([], {}), "auto_map": ({},)}
BERT = Kind(
    classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", *BY_FILE),
    only={
        **OF_ALL,
        "do_basic_tokenize": (True,),
        "never_split": ([],),
        "tokenize_chinese_chars": (True,),
        "clean_text": (True,),
        "word_tokenizer_type": ("basic",),
        "subword_tokenizer_type": ("wordpiece",),
        "wordpieces_prefix": (CONTINUATION_PREFIX,),
        "add_prefix_space": (False,),
        "pad_token": (PAD,),
        "unk_token": (UNK,),
        "cls_token": (CLS,),
        "sep_token": (SEP,),
        "mask_token": (MASK,),
    },
    read=("strip_accents", MAX_CHARACTERS),
)
