"""The kinds of tokenizers of Hugging Face that ours can be, and the settings with which they give the same ids."""

import typing

from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

MAX_CHARACTERS = "max_input_chars_per_word"


class Kind(typing.NamedTuple):
    """A kind of tokenizer that ours can be."""

    classes: tuple[str, ...]  # that are it; the first one where files name none
    only: dict[str, tuple]  # keys of tokenizer_config.json, and the values that do what ours does; None always does
    read: tuple[str, ...]  # keys that are looked at


# Classes that do what tokenizer.json says.
BY_FILE = ("PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer")

_OF_ALL = {"additional_special_tokens": ([],), "extra_special_tokens": ([], {}), "auto_map": ({},)}
BERT = Kind(
    classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", *BY_FILE),
    only={
        **_OF_ALL,
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
ALBERT = Kind(
    classes=("AlbertTokenizer",),
    only={
        **_OF_ALL,
        "remove_space": (True,),
        "add_prefix_space": (True,),
        "sp_model_kwargs": ({},),
        "pad_token": (PAD, "<pad>"),
        "unk_token": ("<unk>", UNK),
        "cls_token": (CLS, "<cls>"),
        "sep_token": (SEP, "<sep>"),
        "mask_token": (MASK, "<mask>"),
    },
    read=("keep_accents",),
)
# ALBERT's steps but for lower-casing, and BERT's special tokens. The folder brings a class of its own, or names that of
# XLNet, which that is made from.
KOBERT = Kind(
    classes=("KoBertTokenizer", "KoBERTTokenizer", "XLNetTokenizer"),
    only={key: allowed for key, allowed in ALBERT.only.items() if key != "auto_map"},
    read=(*ALBERT.read, "auto_map"),
)
XLM_ROBERTA = Kind(
    classes=("XLMRobertaTokenizer", *BY_FILE),
    only={
        **_OF_ALL,
        "add_prefix_space": (True,),
        "sp_model_kwargs": ({},),
        "pad_token": ("<pad>",),
        "unk_token": ("<unk>",),
        "cls_token": ("<s>",),
        "sep_token": ("</s>",),
        "mask_token": ("<mask>",),
    },
    read=(),
)
