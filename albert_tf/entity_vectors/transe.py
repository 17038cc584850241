"""TransE (Bordes et al. 2013): vectors of entities such that head plus relation is near the tail.

Of the paper are the loss (equation 1), how triples are corrupted, how vectors begin and are normalised (algorithm 1),
and stochastic gradient descent. It is NumPy on one core, so that the same triples and settings give the same bytes.
"""

import collections.abc
import dataclasses
import typing

import numpy as np

from albert_tf.errors import InputError
from albert_tf.setting_checks import check_number, check_whole


@dataclasses.dataclass(frozen=True)
class TransESettings:
    """How vectors are learnt.

    Attributes:
        entity_size: Numbers in a vector.
        margin: By how much a triple must be nearer than a corrupted one.
        distance_norm: 1 for the sum of the differences, 2 for their Euclidean length.
        learning_rate: Of stochastic gradient descent, on the sum over a batch.
        train_batch_size: Triples in a batch.
        num_train_epochs: How often each triple is learnt from.
        random_seed: Of all that is drawn.

    Raises:
        InputError: A value is out of range.
    """

    entity_size: int = 100
    margin: float = 1.0
    distance_norm: int = 2
    learning_rate: float = 0.01
    train_batch_size: int = 512
    num_train_epochs: int = 200
    random_seed: int = 12345

    def __post_init__(self):
        for name in ("entity_size", "distance_norm", "train_batch_size", "num_train_epochs"):
            check_whole(name, getattr(self, name), 1)
        check_whole("random_seed", self.random_seed, 0)
        if self.distance_norm not in (1, 2):
            raise InputError(f"`distance_norm` must be 1 or 2. Received: {self.distance_norm}")
        for name in ("margin", "learning_rate"):
            check_number(name, getattr(self, name), "greater than 0", lambda value: value > 0)


class Learnt(typing.NamedTuple):
    """What is learnt after some epochs, and all that the rest follows from.

    Attributes:
        num_epochs: How many.
        entities: float32 [entities, size], each of length 1.
        relations: float32 [relations, size].
        generator: The state of what draws, JSON values by name.
    """

    num_epochs: int
    entities: np.ndarray
    relations: np.ndarray
    generator: dict[str, typing.Any]


class Update(typing.NamedTuple):
    """What a batch says of some rows of a table.

    Attributes:
        rows: Their numbers, each once.
        gradients: float [rows, size].
    """

    rows: np.ndarray
    gradients: np.ndarray


def differences(entities: np.ndarray, relations: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Returns head + relation - tail of triples, float [N, size]."""
    return entities[ids[:, 0]] + relations[ids[:, 1]] - entities[ids[:, 2]]


def distances(values: np.ndarray, norm: int) -> np.ndarray:
    """Returns the length of vectors, float [...]: the sum of absolute values, or the root of the sum of squares."""
    return np.abs(values).sum(axis=-1) if norm == 1 else np.sqrt(np.square(values).sum(axis=-1))


def loss_and_updates(
    entities: np.ndarray, relations: np.ndarray, ids: np.ndarray, corrupted: np.ndarray, settings: TransESettings
) -> tuple[float, Update, Update]:
    """Returns the sum of max(0, margin + d(triple) - d(corrupted)), and its gradients by entities and by relations.

    Args:
        entities: float [entities, size].
        relations: float [relations, size].
        ids: int [N, 3].
        corrupted: int [N, 3], each with another head or tail.
        settings: Margin and norm.
    """
    both = [differences(entities, relations, each) for each in (ids, corrupted)]
    lengths = [distances(each, settings.distance_norm) for each in both]
    losses = settings.margin + lengths[0] - lengths[1]
    counts = (losses > 0)[:, None]
    gradients = []
    for values, length, sign in zip(both, lengths, (1, -1)):
        if settings.distance_norm == 1:
            direction = np.sign(values)
        else:
            direction = values / np.where(length > 0, length, 1)[:, None]  # 0 where head plus relation is the tail
        gradients.append(sign * counts * direction)
    of_entities = _joined(
        np.concatenate([ids[:, 0], ids[:, 2], corrupted[:, 0], corrupted[:, 2]]),
        np.concatenate([gradients[0], -gradients[0], gradients[1], -gradients[1]]),
    )
    of_relations = _joined(np.concatenate([ids[:, 1], corrupted[:, 1]]), np.concatenate(gradients))
    return float(np.maximum(losses, 0).sum(dtype=np.float64)), of_entities, of_relations


def corrupt(ids: np.ndarray, num_entities: int, generator: np.random.Generator) -> np.ndarray:
    """Returns triples of which each has another entity for its head or for its tail, drawn from all others."""
    columns = 2 * generator.integers(2, size=len(ids))
    corrupted, rows = ids.copy(), np.arange(len(ids))
    others = generator.integers(1, num_entities, size=len(ids))
    corrupted[rows, columns] = (ids[rows, columns] + others) % num_entities
    return corrupted


def train(
    ids: np.ndarray,
    num_entities: int,
    num_relations: int,
    settings: TransESettings,
    tell: collections.abc.Callable[[int, int, float], None] = lambda *_: None,
    begun: Learnt | None = None,
    keep: collections.abc.Callable[[Learnt], None] = lambda _: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Learns vectors.

    Args:
        ids: int32 [N, 3].
        num_entities: How many there are.
        num_relations: How many there are.
        settings: How to learn.
        tell: Called after each batch with the epoch, from 0, the number of its triples that are done, and the mean loss
            of these.
        begun: What to go on with, of the same arguments; the result is the same to the bit. None for the beginning.
        keep: Called after each epoch but the last; the tables that it is given change afterwards.

    Returns:
        float32 [entities, size], each of length 1, and float32 [relations, size].

    Raises:
        InputError: The vectors have grown beyond what float32 can hold.
    """
    generator = np.random.default_rng([settings.random_seed, 1])
    if begun is None:
        begun = _begin(num_entities, num_relations, settings.entity_size, generator)
    entities, relations = begun.entities.copy(), begun.relations.copy()
    generator.bit_generator.state = begun.generator
    rate = np.float32(settings.learning_rate)
    for epoch in range(begun.num_epochs, settings.num_train_epochs):
        order, total = generator.permutation(len(ids)), 0.0
        for begin in range(0, len(ids), settings.train_batch_size):
            batch = ids[order[begin : begin + settings.train_batch_size]]
            corrupted = corrupt(batch, num_entities, generator)
            with np.errstate(over="ignore", invalid="ignore"):  # which the loss tells
                loss, of_entities, of_relations = loss_and_updates(entities, relations, batch, corrupted, settings)
                relations[of_relations.rows] -= rate * of_relations.gradients
                # All entities are normalised before each batch; those that it doesn't change stay so.
                rows = of_entities.rows
                entities[rows] = _normalized(entities[rows] - rate * of_entities.gradients)
            total += loss
            _check_finite(loss, entities[rows], relations[of_relations.rows], epoch=epoch)
            tell(epoch, begin + len(batch), total / (begin + len(batch)))
        if epoch + 1 < settings.num_train_epochs:
            keep(Learnt(epoch + 1, entities, relations, generator.bit_generator.state))
    return entities, relations


def _check_finite(*values, epoch):
    if not all(np.isfinite(each).all() for each in values):
        raise InputError(
            f"the vectors have diverged in epoch {epoch + 1}: they hold NaN or infinity; lower `learning_rate`"
        )


def _begin(num_entities, num_relations, size, generator):
    """Draws what is to be learnt from."""
    bound = 6 / size**0.5
    relations = _normalized(generator.uniform(-bound, bound, [num_relations, size]).astype(np.float32))
    entities = _normalized(generator.uniform(-bound, bound, [num_entities, size]).astype(np.float32))
    return Learnt(0, entities, relations, generator.bit_generator.state)


def _joined(rows, gradients):
    """Returns an `Update` of gradients, those of one row added up, in an order that is always the same."""
    order = np.argsort(rows, kind="stable")
    found, begins = np.unique(rows[order], return_index=True)
    return Update(found, np.add.reduceat(gradients[order], begins, axis=0))


def _normalized(vectors):
    lengths = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
    return vectors / np.where(lengths > 0, lengths, 1)
