"""What a training of vectors keeps in its folder until it is done, so that the same command goes on after a stop."""

import dataclasses
import io
import json
import os
import typing
import zipfile

import numpy as np

from albert_tf.entity_vectors.folder import SETTINGS_FILE, UNFINISHED_FILE
from albert_tf.entity_vectors.transe import Learnt
from albert_tf.errors import InputError
from albert_tf.files import names_in, read_bytes, remove, write_bytes

_TABLES = ("entities", "relations")


@dataclasses.dataclass(frozen=True)
class UnfinishedTraining:
    """One file, which is whole or not there.

    Attributes:
        folder: Of the training; the caller holds it.
        identity: What the vectors follow from, JSON values by name; a training is resumed only with the same.
    """

    folder: str
    identity: dict[str, typing.Any]

    @property
    def path(self) -> str:
        """The file."""
        return os.path.join(self.folder, UNFINISHED_FILE)

    def keep(self, learnt: Learnt) -> None:
        """Writes what is learnt so far, in place of what was before."""
        told = {"identity": self.identity, "num_epochs": learnt.num_epochs, "generator": learnt.generator}
        content = io.BytesIO()
        np.savez(content, told=json.dumps(told), **{name: getattr(learnt, name) for name in _TABLES})
        write_bytes(self.path, content.getvalue())

    def take_up(self) -> Learnt | None:
        """Returns what was kept; None for a new folder.

        Raises:
            InputError: The folder holds something else, or what is kept follows from something else.
        """
        names = set(names_in(self.folder))
        if SETTINGS_FILE in names:  # killed between its last two changes
            self.remove()
        if names - {UNFINISHED_FILE}:
            raise InputError(f"`output_dir={self.folder}` holds something already; choose another folder")
        if not names:
            return None
        told, tables = self._read()
        if (then := told["identity"]) != self.identity:
            name = next(name for name in {**then, **self.identity} if then.get(name) != self.identity.get(name))
            raise InputError(
                f"`output_dir={self.folder}` holds an unfinished training in which {name} is {then.get(name)}, "
                f"but now it is {self.identity.get(name)}; repeat the command that began it, or choose another "
                "folder"
            )
        return Learnt(told["num_epochs"], *tables, told["generator"])

    def remove(self) -> None:
        """Deletes the file, which is of no use once the vectors are there."""
        remove(self.path)

    def _read(self):
        content = read_bytes(self.path, "what was learnt so far")
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                return json.loads(found["told"].item()), [found[name] for name in _TABLES]
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{self.path} is damaged, so training can't be resumed; delete it, and start again"
            ) from error
