"""Named entities: a tag for each word or character, and spans of the text."""
