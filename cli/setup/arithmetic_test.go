package setup

import (
	"testing"

	"fspda/cpu"
	"fspda/train"
)

// The digest by which agents compare their programs is the digest of these bits, on every machine.
// A build with other bits has another digest, and its agents cannot join agents of this build.
func TestArithmetic(t *testing.T) {
	c := train.Default()
	c.Agents = 4
	set, err := OpenData(c)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	digest := func(c train.Config) string {
		t.Helper()
		s, _, err := ResolveAgent(c, set, cpu.New())
		if err != nil {
			t.Fatal(err)
		}
		text, err := Arithmetic(s)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const want = "79eefd0b570461d8"
	if got := digest(c); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	other := c
	other.Seed++
	if digest(other) == digest(c) {
		t.Error("other edges have the same digest")
	}
}
