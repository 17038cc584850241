"""The whole road on the built-in sample or on your own text: vocabulary, shards, pre-training, a classifier, a table.

python demo.py --output_dir=demo_output

Every stage is one of the commands that you would type yourself, and is printed before it runs.
"""

from albert_tf.cli.demo import run

if __name__ == "__main__":
    run()
