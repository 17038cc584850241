"""Vectors of entities, learnt from what is known of them: triples of head, relation and tail."""
