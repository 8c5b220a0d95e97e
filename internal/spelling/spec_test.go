package spelling

import (
	"fmt"
	"testing"
)

func ExampleSplit() {
	fmt.Println(Split("er( 0.3 )"))
	// Output: er 0.3 true <nil>
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		spec, name, arg string
		hasArg          bool
	}{
		{"ring", "ring", "", false},
		{" ring ", "ring", "", false},
		{"ring)", "ring)", "", false},
		{"er(0.5)", "er", "0.5", true},
		{"er ( 0.5 ) ", "er", "0.5", true},
		{"file(a(b).txt)", "file", "a(b).txt", true},
		{"er()", "er", "", true},
		{"", "", "", false},
	} {
		name, arg, hasArg, err := Split(c.spec)
		if err != nil || name != c.name || arg != c.arg || hasArg != c.hasArg || Name(c.spec) != c.name {
			t.Errorf("%q: %q, %q, %v, %v", c.spec, name, arg, hasArg, err)
		}
	}
	for _, spec := range []string{"er(0.5", "er(0.5)x", "("} {
		if _, _, _, err := Split(spec); err == nil {
			t.Errorf("%q: no error", spec)
		}
	}
}

func TestNearestForm(t *testing.T) {
	forms := []string{"ring", "er(p)"}
	for spec, want := range map[string]string{"rign": "ring", "grid(0.5)": "", "eer(0.5)": "er(p)", "ring": "",
		"er": ""} {
		if got := NearestForm(spec, forms); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
}
