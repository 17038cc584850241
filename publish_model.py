"""Makes a small folder of a run, to give away or to start from: weights without the optimizer's, config, tokenizer.

python publish_model.py --init_checkpoint=run --output_dir=my_model
"""

from albert_tf.cli.publish_model import run

if __name__ == "__main__":
    run()
