"""Fine-tunes a pre-trained model to find named entities, evaluates it, and predicts.

python run_ner.py --task_name=naver_ner --data_dir=naver_ner --init_checkpoint=run --output_dir=run/ner \\
    --do_train --do_eval --do_predict
"""

from albert_tf.cli.training import run_ner

if __name__ == "__main__":
    run_ner()
