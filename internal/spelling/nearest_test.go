package spelling

import (
	"fmt"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"ring", "star", "hypercube", "swarm", "fspda-storm", "9", "10"}
	for wrong, want := range map[string]string{"rign": "ring", "hyprcub": "hypercube", "stars": "star", "": "",
		"complete": "", "ring": "ring", "RIGN": "ring", "cube": "hypercube", "ube": "", "rin": "ring", "3": "",
		"99": "", "100": "",
		"xyz": "", "storm": "fspda-storm"} {
		if got := Nearest(wrong, names); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}

func ExampleNearest() {
	fmt.Println(Nearest("rign", []string{"path", "ring", "star"}))
	// Output: ring
}
