package traincmd

import (
	"net"
	"strconv"

	"fspda/cli/command"
)

// LauncherEnv is what the environment says of a process among others.
type LauncherEnv struct {
	Rank, Size int    // -1, 0: not said
	Master     string // HOST:PORT of rank 0; "": not said
	Names      string // of the variables
}

// starters are the variables by which launchers tell a process its rank and the number of all.
var starters = [][2]string{
	{"RANK", "WORLD_SIZE"},                           // torchrun, and by hand
	{"SLURM_PROCID", "SLURM_NTASKS"},                 // srun
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, // mpirun
	{"JOB_COMPLETION_INDEX", "FSPDA_AGENTS"},         // an indexed job of Kubernetes
}

// ReadLauncherEnv reads the first pair of variables that is set.
func ReadLauncherEnv(env func(string) string) (LauncherEnv, error) {
	p := LauncherEnv{Rank: -1}
	for _, names := range starters {
		rank, size := env(names[0]), env(names[1])
		if rank == "" {
			continue
		}
		r, err := strconv.Atoi(rank)
		if err != nil || r < 0 {
			return p, command.UsageErrorf("the environment says %s=%q: expected a rank from 0 on", names[0], rank)
		}
		p.Rank, p.Names = r, names[0]
		if size == "" {
			break
		}
		if p.Size, err = strconv.Atoi(size); err != nil || p.Size <= r {
			return p, command.UsageErrorf("the environment says %s=%q and %s=%q: expected a number above the rank",
				names[0], rank, names[1], size)
		}
		p.Names += ", " + names[1]
		break
	}
	if host, port := env("MASTER_ADDR"), env("MASTER_PORT"); host != "" && port != "" {
		p.Master = net.JoinHostPort(host, port)
	}
	return p, nil
}
