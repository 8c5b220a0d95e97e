#!/bin/bash
# Runs one agent per task, on nodes of 8 GPUs or on cores: sbatch deploy/slurm.sh run.yaml
# Shortly before the time limit every agent writes a checkpoint, and the job requeues itself. It does so, too, at most 5
# times, if agents have failed, as where one cannot be started again and the others have given up waiting for it.
#SBATCH --job-name=fspda
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -uo pipefail

config=${1:?the configuration: sbatch deploy/slurm.sh run.yaml}
run=${FSPDA_RUN:-fspda}
certs=${FSPDA_CERTS:-certs-$run}
out=${FSPDA_OUT:-runs/$run}
fspda=${FSPDA:-fspda}

# The file of addresses: each agent listens at a port of its own on the node of its task, below those that systems give to
# connections. Jobs with consecutive numbers and up to 64 tasks have different ports.
peers=peers-$run.yaml
srun --label printenv SLURMD_NODENAME | awk -F ': ' -v port=$((20000 + SLURM_JOB_ID % 180 * 64)) \
  'BEGIN { print "peers:" } { printf "  %d: %s:%d\n", $1, $2, port + $1 }' >"$peers" || exit 2

# The certificates are made in a private folder. The key of their authority is deleted: nobody can add agents.
if [ ! -f "$certs/ca.pem" ]; then
  private=$(umask 077 && mktemp -d) || exit 2
  "$fspda" certs --out "$private" --run "$run" -n "$SLURM_NTASKS" || exit 2
  rm "$private/ca-key.pem"
  (umask 077 && mkdir -p "$certs" && cp "$private"/*.pem "$certs") || exit 2
  rm -r "$private"
fi

# Each task starts its agent again if it dies, at most 20 times. Bad input, divergence, a full disk and a stop end it.
task='
told=
trap "told=1; kill -USR1 \$agent" USR1
for try in {0..20}; do
  "$@" & agent=$!
  wait $agent; status=$?
  [ -n "$told" ] && { wait $agent; status=$?; break; }
  case $status in 0 | 2 | 3 | 4 | 130) break ;; esac
  sleep 2
  [ -n "$told" ] && break
done
exit $status'
srun --kill-on-bad-exit=0 bash -c "$task" task "$fspda" agent -c "$config" --run "$run" --certs "$certs" --peers "$peers" \
  --out "$out" --json &
agents=$!
requeue=
trap 'requeue=1; kill -USR1 $agents' USR1
wait $agents; status=$?
[ -n "$requeue" ] && { wait $agents; status=$?; }
case $status in
0) exit 0 ;;
2 | 3 | 4) ;; # bad input, divergence and a full disk are not mended by another try
*) [ -z "$requeue" ] && [ $status -ne 130 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 5 ] && requeue=1 ;;
esac
if [ -n "$requeue" ]; then
  exec scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
