#!/bin/bash
# Runs one agent per task, on nodes of 8 GPUs or on cores: sbatch deploy/slurm.sh run.yaml
# Shortly before the time limit every agent writes a checkpoint, and the job requeues itself.
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

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT

[ -f "$certs/ca.pem" ] || "$fspda" certs --out "$certs" --run "$run" -n "$SLURM_NTASKS" || exit 2

srun --kill-on-bad-exit=0 "$fspda" agent -c "$config" --run "$run" --certs "$certs" --out "$out" --json &
agents=$!
requeue=
trap 'requeue=1; kill -USR1 $agents' USR1
wait $agents; status=$?
[ -n "$requeue" ] && { wait $agents; status=$?; }
if [ -n "$requeue" ] && [ $status -ne 0 ]; then
  exec scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
