"""What is to be decided of the objectives that are known, which have an effect with these alone."""

import dataclasses
import typing

from albert_tf.objectives.registry import own_settings, settings_of_objectives


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveSettings(*settings_of_objectives()):
    """All of them, in one class."""

    def of_objective(self, name: str) -> dict[str, typing.Any]:
        """Returns the settings of an objective, and those that were given though another one has them."""
        known = own_settings(name)
        return {each: getattr(self, each) for each in ObjectiveSettings.names() if each in known or each in self.given}
