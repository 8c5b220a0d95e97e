package fakecuda

import (
	"fmt"
	"strings"
)

// Machine is what GPUs the libraries shall find, and what they shall do to their caller. Zero
// values are of one H100 of 1 GiB.
type Machine struct {
	GPUs       int
	Capability int // 10·major + minor
	Driver     int // the version of CUDA that the driver speaks: 1000·major + 10·minor
	CUDNN      int // version
	Memory     int // bytes of each GPU
	NoPeers    bool
	NoLt       bool // cuBLASLt has no algorithm for anything
	// of the order in which streams do their work; multiples of 3 do as little and as late as can
	// be
	Seed   int
	Vanish string // the GPUs are lost once there is such a file
	// "function:n:result" makes the nth call of a function return a result, "*" is any function;
	// with + behind, all calls from there on
	Fail []string
}

// Env is the environment of a program that shall find the libraries of dir on this machine, and
// write its report to a file.
func (m Machine) Env(dir, report string) []string {
	env := []string{"FSPDA_CUDA_PATH=" + dir, "FSPDA_FAKECUDA_REPORT=" + report,
		"FSPDA_FAKECUDA_FAIL=" + strings.Join(m.Fail, ","), "FSPDA_FAKECUDA_VANISH=" + m.Vanish}
	for name, v := range map[string]int{"GPUS": m.GPUs, "CAPABILITY": m.Capability, "DRIVER": m.Driver,
		"CUDNN": m.CUDNN, "MEMORY": m.Memory, "SEED": m.Seed} {
		if v != 0 {
			env = append(env, fmt.Sprintf("FSPDA_FAKECUDA_%s=%d", name, v))
		}
	}
	if m.NoPeers {
		env = append(env, "FSPDA_FAKECUDA_PEERS=0")
	}
	if m.NoLt {
		env = append(env, "FSPDA_FAKECUDA_LT=0")
	}
	return env
}
