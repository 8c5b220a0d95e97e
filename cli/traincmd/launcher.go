package traincmd

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"fspda/cli/command"
)

// LauncherEnv is the part of a process in a job, as its launcher sets it in the environment.
type LauncherEnv struct {
	Rank, Size int    // -1 and 0 if not set
	Master     string // HOST:PORT of rank 0; "" if not set
	Names      string // names of the variables that were read
}

// launchers lists the variables by which launchers tell a process its rank and the number of
// processes.
var launchers = [][2]string{
	{"RANK", "WORLD_SIZE"},                           // torchrun, or set by hand
	{"SLURM_PROCID", "SLURM_NTASKS"},                 // srun
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, // mpirun
	{"JOB_COMPLETION_INDEX", "FSPDA_AGENTS"},         // an indexed job of Kubernetes
}

// launcherPrefixes and launcherNames list the beginnings and names of variables by which launchers
// describe a process and its job.
var (
	launcherPrefixes = []string{"SLURM", "OMPI_", "PMI_", "PMIX_", "MV2_COMM_", "MPI_", "HYDRA_", "HYDI_", "I_MPI_",
		"PALS_", "ALPS_", "FLUX_", "JSM_", "PBS_", "LSB_", "TORCHELASTIC_", "PET_", "KUBERNETES_"}
	launcherNames = []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
		"ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT",
		"JOB_COMPLETION_INDEX", "FSPDA_AGENTS"}
)

// WithoutLauncher returns the variables of an environment that do not come from a launcher: those of
// a child whose part of the job is not that of this process.
func WithoutLauncher(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(launcherNames, name) ||
			slices.ContainsFunc(launcherPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}

// ReadLauncherEnv reads the first pair of variables that is set.
func ReadLauncherEnv(env func(string) string) (LauncherEnv, error) {
	e := LauncherEnv{Rank: -1}
	for _, names := range launchers {
		rank, size := env(names[0]), env(names[1])
		if rank == "" {
			continue
		}
		r, err := strconv.Atoi(rank)
		if err != nil || r < 0 {
			return e, command.UsageErrorf("the environment says %s=%q: expected a rank from 0 on", names[0], rank)
		}
		e.Rank, e.Names = r, names[0]
		if size == "" {
			break
		}
		if e.Size, err = strconv.Atoi(size); err != nil || e.Size <= r {
			return e, command.UsageErrorf("the environment says %s=%q and %s=%q: expected a number above the rank",
				names[0], rank, names[1], size)
		}
		e.Names += ", " + names[1]
		break
	}
	if host, port := env("MASTER_ADDR"), env("MASTER_PORT"); host != "" && port != "" {
		e.Master = net.JoinHostPort(host, port)
	}
	return e, nil
}
