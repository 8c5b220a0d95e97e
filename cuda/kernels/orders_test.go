package kernels_test

import (
	"os"
	"os/exec"
	"testing"

	"fspda/internal/testing/hostrun"
)

// All tests of kernels pass in every order of threads and blocks, and with the compiler's
// sanitizers. Other test runs use one random order.
func TestOrders(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("runs all other tests eight times: set FSPDA_LONG=1")
	}
	onHost(t)
	for _, order := range []string{"ascending", "descending", "1", "2", "3", "4", "5"} {
		again(t, hostrun.OrderVariable+"="+order)
	}
	again(t, hostrun.CheckedVariable+"=1")
}

// again runs the other kernel tests of this package with a variable in the environment.
func again(t *testing.T, variable string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.skip", "^TestOrders$|^TestCompile")
	cmd.Env = append(os.Environ(), variable)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", variable, err, out)
	}
}
