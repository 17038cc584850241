"""How often each language of a set of shards is drawn (XLM; Conneau and Lample 2019, section 3.1)."""

from albert_tf.errors import InputError
from albert_tf.pretraining_data.languages import languages_of, sampling_shares
from albert_tf.pretraining_data.mixture import Mixture
from albert_tf.pretraining_data.shards import ShardSet


def language_mixture(shards: ShardSet, exponent: float, is_one_a_batch: bool = False) -> Mixture | None:
    """Returns what is drawn of shards of several languages, None of those of one, or of which nothing is said.

    Texts in one language, and tables of pairs, have their turns: a step of the one, then a step of the other. Among
    either, sizes are counted in pieces.

    Args:
        shards: The shards.
        exponent: See `sampling_shares`.
        is_one_a_batch: Whether a batch is in one language, or of one table of pairs.

    Raises:
        InputError: The exponent is not from 0 to 1, or the shards of a language are all left out as damaged.
    """
    names = shards.sources
    if len(names) < 2:
        return None
    sources = tuple(shards.sources_of_shards)
    missing = [name for number, name in enumerate(names) if number not in sources]
    if missing:
        raise InputError(
            f"`input_file` names no shards in the language {missing[0]}, but the manifest lists some; name them all"
        )
    tasks = [[n for n, name in enumerate(names) if len(languages_of(name)) == number] for number in (1, 2)]
    turns = tuple(tuple(task) for task in tasks if task)
    sizes, shares = shards.tokens_of_sources, dict.fromkeys(range(len(names)), 0.0)
    for turn in turns:
        shares |= zip(turn, sampling_shares([sizes[source] for source in turn], exponent))
    return Mixture(sources, tuple(shares.values()), turns, is_one_a_batch)


def describe_mixture(shards: ShardSet, mixture: Mixture) -> str:
    """Returns a line that says of each language how much there is of it, and how often it is drawn."""
    sizes = shards.tokens_of_sources
    parts = [
        f"{name} {size / sum(sizes):.1%} of the pieces, {frequency:.1%} of the examples drawn"
        for name, size, frequency in zip(shards.sources, sizes, mixture.frequencies)
    ]
    turns = ", texts and pairs step by step in turns" if len(mixture.turns) > 1 else ""
    return f"languages{turns}: {'; '.join(parts)}"
