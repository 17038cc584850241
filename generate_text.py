"""Goes on with texts, or with every line of a file, as a causal language model does.

python generate_text.py --model_dir=run/gpt --text="이 영화는" --top_p=0.9
"""

from albert_tf.cli.generate_text import run

if __name__ == "__main__":
    run()
