"""How many texts are longer than what is read of them."""

import numpy as np

# Of more texts than this share it is a warning.
_FEW = 0.01


def describe_cuts(cut: np.ndarray, kept: int, what: str, where: str, limit: str) -> str | None:
    """Returns how many texts are cut, and by how much; None if none is.

    Args:
        cut: int [N, ...], how many pieces of each text are left out.
        kept: How many pieces of all texts together are not.
        what: What one of them is called, as in "text".
        where: What they are of, as in "in train.tsv"; may be empty.
        limit: What the limit is, and what may be done about it.
    """
    count = count_cut(cut)
    if not count:
        return None
    warning = "warning: " if count > _FEW * len(cut) else ""
    are = f"{count:,} of {len(cut):,} {what}s{where and f' {where}'} {'are' if count > 1 else 'is'} cut"
    lost = f"{cut.sum() / (cut.sum() + kept):.1%} of all pieces are left out, {cut.max():,} of one {what} at most"
    return f"{warning}{are}: {lost}; {limit}"


def count_cut(cut: np.ndarray) -> int:
    """Returns how many texts are cut, given how many pieces of each are left out, int [N, ...]."""
    cut = np.asarray(cut)
    return int(np.count_nonzero(cut.reshape([len(cut), -1]).any(axis=1))) if cut.size else 0


def length_limit(max_seq_length: int, longest_sequence: int) -> str:
    """Returns the `limit` of `describe_cuts` where it is the length of a sequence."""
    if max_seq_length < longest_sequence:
        return f"max_seq_length is {max_seq_length}, and can be raised to {longest_sequence}"
    return f"the model reads {max_seq_length} pieces, so divide longer texts, or train a model that reads more"
