//go:build !windows

package traincmd

import "testing"

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
