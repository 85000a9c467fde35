#!/usr/bin/env bash
# Trains a model of FB15k-237 on one GPU or TPU in at most 10 minutes. The model
# is the paper's, or with `--settings=recipe` that of configs/fb15k237_cpu.py.
#
#   COKE_DATA_DIR=<folder with FB15k-237/> OUT=results \
#     bash experiments/benchmarks/run.sh [--minutes=8] [--settings=recipe] [--smoke]
#
# Needs the package's dependencies and matplotlib; needs no network.
# accelerator.py describes the results. With `--smoke`, the script uses the
# graph that ships with the package and takes a minute on a CPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${OUT:-accelerator_results}"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1
python3 -m experiments.benchmarks.accelerator \
  --out="$out" --work="$work/run" "$@" 2>&1 | tee "$out/log.txt"
# Writes the model in pieces of 15 MB. To unpack: cat model.tar.gz.* | tar xz
python3 -m coke_jax.main --mode=export --workdir="$work/run" \
  --output="$work/model"
tar cz -C "$work" model | split -b 15000000 - "$out/model.tar.gz."
ls -l "$out"
