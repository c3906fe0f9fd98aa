# The commands of the book. Each sets up .venv first where it is missing, or older than pyproject.toml; the second call
# of any of them needs no network. Every NAME=VALUE given behind `make book` is passed on to the notebooks, which
# refuse the names they do not know:
#
#   make book BENCHMARK=judgebench SOURCE=../shared/data/judgebench N_PAIRS=24
#   make book ONLY="03 04"                  # only these notebooks
#   make grid GRID=file.yml                 # many settings (notebooks/README.md)

PYTHON ?= python3
PY := .venv/bin/python
# an editable installation points at its folder, so a moved clone installs itself again
STAMP := .venv/installed-$(shell pwd | cksum | cut -d' ' -f1)

# what was written on make's command line, quoted for the shell; nothing has to be listed twice
quoted = '$(subst ','\'',$(1))'
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
settings := $(foreach name,$(filter-out PYTHON ONLY GRID,$(given)),$(call quoted,$(name)=$(value $(name))))

.PHONY: help book grid exercises reference test lab bench proofs judge clean

help:
	@echo "make book | grid | test | lab | exercises | reference | bench | proofs | clean     (what they do: README.md)"

book: $(STAMP) $(if $(filter-out smollm2-135m%,$(BACKBONE)),,judge)
	@$(PY) -m baer_utils book $(if $(ONLY),--only $(ONLY)) $(if $(settings),--set $(settings))

grid: $(STAMP)
	@$(PY) -m baer_utils grid book $(call quoted,$(GRID))

exercises: $(STAMP)
	@$(PY) -m baer_utils exercises

reference: $(STAMP) judge
	@$(PY) -m baer_utils reference

test: $(STAMP) judge
	@$(PY) -m pytest -n 2 --dist loadgroup

lab: $(STAMP)
	$(PY) -m jupyterlab notebooks

# hours in all, resumable; make bench ONLY="reads bank" measures these sections
bench: $(STAMP) judge
	@$(PY) -m baer_utils bench judge $(if $(ONLY),--only $(ONLY))

proofs: $(STAMP) judge
	$(PY) -m tests.proofs

judge: $(STAMP)
	@$(PY) -m baer_utils fetch

$(STAMP): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" \
	  || { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PY) -c "" 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@echo "Installing into .venv (once; some minutes) ..."
	@$(PY) -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

# keeps outputs/store (paid-for judgments), outputs/bench (measured so far), outputs/reference and data/models (the judge)
clean:
	@find outputs -mindepth 1 -maxdepth 1 ! -name store ! -name reference ! -name bench -exec rm -rf {} + 2>/dev/null || true
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@rm -rf .pytest_cache .ruff_cache .hypothesis build
