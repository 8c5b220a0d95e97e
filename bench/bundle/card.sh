#!/bin/sh
# The acceptance tests of fspda on a machine with an NVIDIA GPU, in one file: this script, and after
# it a compressed archive with the program (make card writes it).
#
#   sh card.sh OUT [PART...]
#
# needs the GPU's driver and a python3 with PyTorch, whose copies of NVIDIA's libraries are used. PART
# is part of a name, as in fspda bench card --only. OUT gets at most eight files: card.md, card.json,
# choices.jsonl, console.log, logs.tar.gz and cubins.tar.gz, the compiled kernels. A second call, also on
# another machine with a copy of OUT, goes on with the parts that are left.
# Variables: PYTHON (python3), BUDGET (9m), CARD_FLAGS (more flags of fspda bench card).
set -u
if [ $# -lt 1 ]; then
  echo "usage: sh $0 OUT [PART...]" >&2
  exit 2
fi
out=$1
shift
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd) || exit 1
work=$out/.work
rm -rf "$work"
mkdir "$work" || exit 1
child=
finish() { # packs what the run has left, also where it was stopped
  [ -z "$child" ] || { kill -TERM "$child" && wait "$child"; } 2>/dev/null
  if [ -d "$out/logs" ]; then
    mkdir -p "$work/logs"
    for log in "$out"/logs/*; do tail -c 500000 "$log" >"$work/logs/${log##*/}"; done
    tar -C "$work" -czf "$work/logs.tar.gz" logs && mv "$work/logs.tar.gz" "$out" && rm -rf "$out/logs"
  fi
  if [ -d "$work/cache/fspda/cubin" ]; then
    tar -C "$work/cache" -czf "$work/cubins.tar.gz" fspda/cubin && mv "$work/cubins.tar.gz" "$out"
  fi
  rm -rf "$work" "$out"/.part-* "$out"/.new-*
}
trap 'finish; exit 130' INT TERM HUP

start=$(LC_ALL=C grep -a -n -m 1 '^# the archive follows$' "$0" | cut -d: -f1)
tail -n +$((start + 1)) "$0" | tar -C "$work" -xzf - || { echo "$0 is damaged: copy it again" >&2; rm -rf "$work"; exit 1; }
# choices of convolutions, and compiled kernels, that were made before, on the same kind of GPU
for made in choices.jsonl cubins.tar.gz; do
  [ ! -f "$work/$made" ] || [ -f "$out/$made" ] || cp "$work/$made" "$out"
done
[ ! -f "$out/logs.tar.gz" ] || tar -C "$out" -xzf "$out/logs.tar.gz"

python=${PYTHON-python3}
if command -v "$python" >/dev/null 2>&1; then
  # wheels lie in nvidia/ of a folder of packages; builds with everything inside have them in torch/lib
  found=$("$python" -c 'import os, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
print(":".join(dict.fromkeys(p for r in roots if r for p in (r, os.path.join(r, "torch", "lib")) if os.path.isdir(p))))')
  FSPDA_CUDA_PATH=${FSPDA_CUDA_PATH:+$FSPDA_CUDA_PATH:}$found
  export FSPDA_CUDA_PATH
else
  echo "no $python: PyTorch is left out, and NVIDIA's libraries are looked for in the system" >&2
  python=
fi
only=$(IFS=,; echo "$*")
export XDG_CACHE_HOME="$work/cache" # HOME may be read-only, or missing
mkdir "$XDG_CACHE_HOME"
[ ! -f "$out/cubins.tar.gz" ] || tar -C "$XDG_CACHE_HOME" -xzf "$out/cubins.tar.gz"
mkfifo "$work/console"
tee -a "$out/console.log" <"$work/console" &
"$work/fspda" bench card --out "$out" --python "$python" --budget "${BUDGET:-9m}" ${only:+--only "$only"} \
  ${CARD_FLAGS-} >"$work/console" 2>&1 &
child=$!
wait "$child"
status=$?
child=
wait # for tee
finish
exit "$status"
# the archive follows
