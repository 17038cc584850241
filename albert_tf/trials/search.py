"""Which settings to try: all combinations of listed values, or values drawn out of ranges."""

import collections
import dataclasses
import itertools
import math
import typing

import numpy as np

# What is changed by factors, and not by steps: half of a learning rate is as far away as twice of it.
LOGARITHMIC = frozenset({"learning_rate", "head_learning_rate", "weight_decay"})

_DIGITS = 3  # of a number that is drawn, so that its folder and the table show all of it


@dataclasses.dataclass(frozen=True)
class Choices:
    """Listed values of a setting.

    Attributes:
        name: The setting.
        values: Numbers, names or truth values; none is there twice.
    """

    name: str
    values: tuple[typing.Any, ...]

    def at(self, share: float) -> typing.Any:
        """Returns the value at a share of the way from the first to the last, at least 0 and less than 1."""
        return self.values[int(share * len(self.values))]

    def __str__(self):
        return "|".join(map(as_text, self.values))


@dataclasses.dataclass(frozen=True)
class Range:
    """All values of a setting between two, both of them included.

    Attributes:
        name: The setting; those in `LOGARITHMIC` are drawn evenly by the logarithm, others by the value.
        low: The lowest value, above 0 for the logarithm; of an int all values are whole numbers.
        high: The highest.
    """

    name: str
    low: float
    high: float

    def at(self, share: float) -> float:
        """Returns the value at a share of the way from the lowest to the highest, at least 0 and less than 1."""
        if isinstance(self.low, int):
            return self.low + int(share * (self.high - self.low + 1))
        if self.name in LOGARITHMIC:
            value = self.low * math.exp(share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def __str__(self):
        return f"{as_text(self.low)}..{as_text(self.high)}"


@dataclasses.dataclass(frozen=True)
class Search:
    """What to try, how often, and what decides which values are drawn.

    Attributes:
        settings: What is tried of each setting; nothing for trainings that differ in their seeds alone.
        num_trials: Where all are `Choices`, how often each combination of them is trained. With a `Range` among them,
            the number of trainings, each with values of its own.
        random_seed: The seed of the first training, and of the values.
    """

    settings: tuple[Choices | Range, ...]
    num_trials: int
    random_seed: int

    def variants(self) -> list[dict[str, typing.Any]]:
        """Returns what each training changes, "random_seed" last of it; the same ones each time.

        More trainings begin with those that fewer would be. Settings that come again get the next seed.
        """
        names = [each.name for each in self.settings]
        if any(isinstance(each, Range) for each in self.settings):
            rows = [[each.at(share) for each, share in zip(self.settings, shares)] for shares in self._shares()]
        else:
            combinations = itertools.product(*(each.values for each in self.settings))
            rows = [row for row in combinations for _ in range(self.num_trials)]
        seeds = collections.defaultdict(lambda: itertools.count(self.random_seed))
        return [{**dict(zip(names, row)), "random_seed": next(seeds[tuple(row)])} for row in rows]

    def _shares(self):
        """Returns points in the unit cube, [num_trials, number of settings], that leave no large gaps.

        A quasi-random sequence covers ranges better than independent draws do where trainings are few: multiples of
        powers of the root of x^(d + 1) = x + 1, modulo 1 (Roberts 2018, "The Unreasonable Effectiveness of Quasirandom
        Sequences"), moved by the seed.
        """
        count = len(self.settings)
        root = 2.0
        for _ in range(64):  # it is the fixed point of x = (1 + x)^(1 / (d + 1))
            root = (1 + root) ** (1 / (count + 1))
        steps = root ** -np.arange(1, count + 1)
        begin = np.random.default_rng(self.random_seed).random(count)
        return (begin + np.arange(self.num_trials)[:, np.newaxis] * steps) % 1.0

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns what tells it from another search, JSON values by name; more trainings are the same one gone on."""
        return {"settings": {each.name: str(each) for each in self.settings}, "random_seed": self.random_seed}


def as_text(value: typing.Any) -> str:
    """Returns a value as it is typed, and as folders are called after it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)
