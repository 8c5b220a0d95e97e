package cli

import (
	"fmt"
	"net"
	"strconv"
)

// place is what the environment says of a process among others.
type place struct {
	rank, size int    // -1, 0: not said
	master     string // HOST:PORT of rank 0; "": not said
	names      string // of the variables
}

// starters are the variables by which launchers tell a process its rank and the number of all.
var starters = [][2]string{
	{"RANK", "WORLD_SIZE"},                           // torchrun, and by hand
	{"SLURM_PROCID", "SLURM_NTASKS"},                 // srun
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, // mpirun
	{"JOB_COMPLETION_INDEX", "FSPDA_AGENTS"},         // an indexed job of Kubernetes
}

// placeOf reads the first pair of variables that is set.
func placeOf(env func(string) string) (place, error) {
	p := place{rank: -1}
	for _, names := range starters {
		rank, size := env(names[0]), env(names[1])
		if rank == "" {
			continue
		}
		r, err := strconv.Atoi(rank)
		if err != nil || r < 0 {
			return p, &usageError{fmt.Sprintf("the environment says %s=%q: expected a rank from 0 on", names[0], rank)}
		}
		p.rank, p.names = r, names[0]
		if size == "" {
			break
		}
		if p.size, err = strconv.Atoi(size); err != nil || p.size <= r {
			return p, &usageError{fmt.Sprintf("the environment says %s=%q and %s=%q: expected a number above the rank",
				names[0], rank, names[1], size)}
		}
		p.names += ", " + names[1]
		break
	}
	if host, port := env("MASTER_ADDR"), env("MASTER_PORT"); host != "" && port != "" {
		p.master = net.JoinHostPort(host, port)
	}
	return p, nil
}
