//go:build !windows

package traincmd

import (
	"slices"
	"strings"
	"testing"
)

func TestReadLauncherEnv(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want LauncherEnv
		bad  bool
	}{
		{map[string]string{}, LauncherEnv{Rank: -1}, false},
		{map[string]string{"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "n1", "MASTER_PORT": "4700"},
			LauncherEnv{3, 8, "n1:4700", "RANK, WORLD_SIZE"}, false},
		{map[string]string{"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, LauncherEnv{1, 2, "",
			"SLURM_PROCID, SLURM_NTASKS"}, false},
		{map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "MASTER_ADDR": "::1",
			"MASTER_PORT": "1"}, LauncherEnv{0, 2, "[::1]:1", "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE"}, false},
		{map[string]string{"RANK": "3"}, LauncherEnv{Rank: 3, Names: "RANK"}, false},
		{map[string]string{"RANK": "x"}, LauncherEnv{}, true},
		{map[string]string{"RANK": "-1"}, LauncherEnv{}, true},
		{map[string]string{"RANK": "2", "WORLD_SIZE": "2"}, LauncherEnv{}, true},
	} {
		got, err := ReadLauncherEnv(func(k string) string { return c.env[k] })
		if (err != nil) != c.bad || !c.bad && got != c.want {
			t.Errorf("%v: %+v, %v", c.env, got, err)
		}
	}
}

// Environments of processes of launchers, without what they have in common with others.
var launched = map[string][]string{
	"salloc and srun --pty": {"SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_JOB_ID=17", "SLURMD_NODENAME=n1",
		"SLURM_LOCALID=0"},
	"srun": {"SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_NPROCS=4", "PMI_RANK=3", "PMI_SIZE=4"},
	"mpirun of Open MPI": {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
		"PMIX_RANK=1", "PMIX_NAMESPACE=prterun-1"},
	"mpiexec of MPICH": {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5", "MPI_LOCALRANKID=1", "HYDI_CONTROL_FD=7"},
	"torchrun": {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0", "ROLE_RANK=1",
		"ROLE_NAME=default", "MASTER_ADDR=n1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=none"},
	"PyTorchJob":  {"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=localhost", "MASTER_PORT=23456", "PET_NNODES=1"},
	"indexed job": {"JOB_COMPLETION_INDEX=1", "FSPDA_AGENTS=2", "KUBERNETES_SERVICE_HOST=10.0.0.1"},
	"a bad value": {"RANK=one", "WORLD_SIZE=", "MASTER_PORT=abc"},
}

// A child gets nothing that a launcher told its parent, and everything else.
func TestWithoutLauncher(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/root", "CUDA_VISIBLE_DEVICES=1", "LD_LIBRARY_PATH=/lib", "GOMEMLIMIT=1GiB",
		"OMP_NUM_THREADS=2", "FSPDA_WEB_TOKEN=secret", "http_proxy=http://p:1", "NVIDIA_VISIBLE_DEVICES=all", "A==B"}
	for name, env := range launched {
		got := WithoutLauncher(slices.Concat(own[:4], env, own[4:]))
		if !slices.Equal(got, own) {
			t.Errorf("%s: %q", name, got)
		}
		read, err := ReadLauncherEnv(func(name string) string {
			for _, v := range got {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if err != nil || read != (LauncherEnv{Rank: -1}) {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
	}
	for _, pair := range launchers {
		for _, name := range pair {
			if len(WithoutLauncher([]string{name + "=1"})) > 0 {
				t.Errorf("a child reads %s of its parent", name)
			}
		}
	}
}
