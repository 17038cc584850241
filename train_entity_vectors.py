"""Learns vectors of entities from triples of head, relation and tail, as TransE does.

python train_entity_vectors.py --input_file=triples.tsv --output_dir=entity_vectors
"""

from albert_tf.cli.train_entity_vectors import run

if __name__ == "__main__":
    run()
