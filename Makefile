# `make demo` runs the whole road on the built-in sample; `make test` runs the tests. Both install what they need into
# .venv first.
#
#   make demo CORPUS=path     your own text: a file, or a folder of .txt or .jsonl (.gz too) and .parquet files
#   make test REFERENCES=1    also installs PyTorch, Transformers, KerasHub, JAX, LiteRT, ONNX, Gradio, Beam and what
#                             builds the site and runs the notebooks: some tests need them
#   make test-fast            the tests without the marker `slow`, for while you work: five minutes on two cores with
#                             AVX-512, twelve on two without; `make test` and CI run all of them
#   make test-short RUN=path/to/python    a part of those, in an environment of your own, such as with another TensorFlow

PYTHON ?= python3
OUTPUT ?= demo_output
VENV := .venv
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest -n auto --dist worksteal -q $(PYTEST_FLAGS)
# Parts of the tests, each in processes of its own: what TensorFlow has traced and compiled stays in memory until a
# process ends, and all of it together needs more than 20 GB.
PART_1 := $(wildcard tests/cli/test_run_*.py)
PART_2 := $(filter-out $(PART_1),$(wildcard tests/cli/test_*.py))
PART_3 := tests/modeling tests/runs
PART_4 := tests/training
PART_5 := tests/tokenization tests/interchange tests/serving tests/asking
PART_6 := tests $(addprefix --ignore=,tests/cli $(PART_3) $(PART_4) $(PART_5))

# A part of the tests for each part of the library.
SHORT_TESTS := tests/test_config.py tests/test_imports.py tests/tokenization/test_tokenizer.py \
    tests/tokenization/test_call.py tests/tokenization/test_keras_layer.py tests/modeling/test_models.py \
    tests/modeling/test_variables.py tests/modeling/test_pretrained.py tests/objectives \
    tests/optimization/test_schedule.py tests/training/test_train_step.py tests/training/test_checkpoints.py \
    tests/finetuning/tasks/test_classification.py tests/pretraining_data/test_records.py

.PHONY: demo test test-fast test-short lint clean

demo: $(VENV)/installed-demo
	$(RUN) -m albert_tf demo --output_dir="$(OUTPUT)" --overwrite $(if $(CORPUS),--corpus="$(CORPUS)")

test: $(VENV)/installed-test $(if $(REFERENCES),$(VENV)/installed-references)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	@failed=; for part in "$(PART_1)" "$(PART_2)" "$(PART_3)" "$(PART_4)" "$(PART_5)" "$(PART_6)"; do \
		echo "$(PYTEST) $$part"; $(PYTEST) $$part || failed=yes; done; test -z "$$failed"

test-fast: $(VENV)/installed-test
	$(PYTEST) -m "not slow"

test-short:
	$(RUN) -m pytest -q -m "not slow" $(PYTEST_FLAGS) $(SHORT_TESTS)

lint: $(VENV)/installed-test
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

clean:
	rm -rf $(VENV) demo_output

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || \
		{ echo "albert_tf needs Python 3.10 to 3.13; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) can't make a virtual environment; on Debian or Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/installed-demo: requirements.txt | $(RUN)
	@echo "installing TensorFlow and the rest of $< into $(VENV), 2.7 GB; pip says nothing until it is done"
	$(RUN) -m pip install --disable-pip-version-check -q -r $<
	@touch $@

$(VENV)/installed-test: requirements-test.txt requirements.txt | $(RUN)
	$(RUN) -m pip install --disable-pip-version-check -q -r $<
	@touch $@

$(VENV)/installed-references: requirements-references.txt | $(VENV)/installed-test
	$(RUN) -m pip install --disable-pip-version-check -q -r $<
	@touch $@
