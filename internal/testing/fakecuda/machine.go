package fakecuda

import (
	"fmt"
	"strings"
)

// Machine describes the GPUs that the libraries report, and their faults. The zero value has one
// H100 with 1 GiB.
type Machine struct {
	GPUs       int
	Capability int // 10·major + minor
	Driver     int // CUDA version of the driver: 1000·major + 10·minor
	CUDNN      int // version of cuDNN
	Memory     int // bytes per GPU
	NoPeers    bool
	NoLt       bool // cuBLASLt has no algorithm for any product
	// seed of the order in which streams run; multiples of 3 run as little and as late as possible
	Seed   int
	Vanish string // the GPUs are lost as soon as this file exists
	// "function:n:result" makes the nth call of a function return a result; "*" stands for any
	// function; a trailing + extends it to all later calls. The results [Hangs] and [Crashes] are no
	// results of the driver.
	Fail []string
}

// Results of a call that Machine.Fail names.
const (
	Hangs   = -1 // it never returns, and no other call does either
	Crashes = -2 // the process ends by a signal
)

// Env returns the environment of a program that is to find the libraries of dir on this machine and
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
