"""How tokens are chosen, and how many."""

import dataclasses

from albert_tf.settings import check_number, check_whole

# Below this nothing but the most probable piece has a probability that float32 can hold.
_LOWEST_TEMPERATURE = 1e-6
_MOST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class GenerationOptions:
    """How a text is continued.

    A token is drawn from the model's distribution, changed by these options in their order. With `temperature` 0 or
    `top_k` 1 nothing is drawn: the most probable token is taken (greedy).

    Attributes:
        max_pieces: Most tokens of a continuation; it ends earlier where the document does.
        repetition_penalty: Logits of tokens that the text already holds are divided by it if they are positive, and
            else multiplied (Keskar et al. 2019, section 4.1); 1 for no penalty.
        temperature: Divides logits: below 1 the probable tokens are drawn more often.
        top_k: Draw from so many of the most probable tokens; None for all.
        top_p: Draw from the fewest of the most probable tokens that together have this probability (Holtzman et al.
            2020); None for all.
        seed: Random draws depend on this seed and the text alone.

    Raises:
        InputError: A value is out of range.
    """

    max_pieces: int = 64
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self):
        check_whole("max_pieces", self.max_pieces, 1, _MOST)
        check_whole("seed", self.seed, 0)
        if self.top_k is not None:
            check_whole("top_k", self.top_k, 1, _MOST)
        check_number("temperature", self.temperature, "from 0 to 100", lambda value: 0 <= value <= 100)
        check_number("repetition_penalty", self.repetition_penalty, "from 1 on", lambda value: value >= 1)
        if self.top_p is not None:
            check_number("top_p", self.top_p, "greater than 0 and at most 1", lambda value: 0 < value <= 1)

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken, and none drawn."""
        return self.top_k == 1 or self.temperature < _LOWEST_TEMPERATURE
