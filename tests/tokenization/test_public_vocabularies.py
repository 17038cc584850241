"""Published vocabularies work as they are, and give the ids and offsets of Hugging Face's own tokenizer."""

import pytest
import reference
from tokenizers import BertWordPieceTokenizer, Tokenizer, models, pre_tokenizers

from albert_tf.tokenization import KoreanWordPieceTokenizer

CONTINUATION = ["koelectra_32200.txt", "kcbert_30000.txt", "krbert_char_16424.txt"]
SEED = "ilhoonkim_nsmc_26383.txt"


@pytest.fixture
def reviews(shared_data) -> list[str]:
    """Movie reviews, spelled as people do."""
    lines = (shared_data / "nsmc" / "ratings_dev.txt").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t")[1] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("name", CONTINUATION)
def test_ids_and_offsets_are_those_of_hugging_face(shared_data, reviews, name, lower_case):
    vocab_file = str(shared_data / "vocabs" / name)
    peer = BertWordPieceTokenizer(vocab_file, lowercase=lower_case, strip_accents=False)
    tokenizer = KoreanWordPieceTokenizer.from_vocab_file(vocab_file, lower_case=lower_case)
    encodings = tokenizer.encode_batch(reviews)
    for review, ours, theirs in zip(reviews, encodings, peer.encode_batch(reviews), strict=True):
        assert (ours.ids, ours.offsets) == (theirs.ids, theirs.offsets), review


def test_ids_of_the_seed_system_are_those_of_hugging_face(shared_data, reviews):
    settings = {"wordpiece_scheme": "end_of_word", "lower_case": False, "split_punctuation": False}
    tokenizer = KoreanWordPieceTokenizer.from_vocab_file(shared_data / "vocabs" / SEED, **settings)
    ids = {piece: piece_id for piece_id, piece in enumerate(tokenizer.vocabulary.pieces)}
    peer = Tokenizer(
        models.WordPiece(ids, unk_token="[UNK]", continuing_subword_prefix="", max_input_chars_per_word=200)
    )
    peer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    split = reference.ReferenceTokenizer([], **settings).words
    encodings = peer.encode_batch([" ".join(split(review)) for review in reviews])
    assert tokenizer.encode_ids(reviews).to_list() == [encoding.ids for encoding in encodings]
