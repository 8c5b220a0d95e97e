package main

import (
	"os"
	"strings"
	"testing"
)

// The CPU engine passes what it is the measure of. All of the contract takes seconds; cpu's own test has it in every run.
func TestSelftest(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("the contract of a device takes seconds: FSPDA_LONG=1 tries it from the program too")
	}
	status, stdout, stderr := call(t, "selftest", "--device", "cpu")
	if status != 0 || strings.Count(stdout, " ok (") != 4 {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
}

// With other roundings the contract has no bounds; networks and trainings are compared still.
func TestSelftestWithoutContract(t *testing.T) {
	status, stdout, stderr := call(t, "selftest", "--device", "cpu", "--precision", "tf32")
	if status != 0 || strings.Count(stdout, " ok (") != 3 {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
}
