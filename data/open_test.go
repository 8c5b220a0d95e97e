package data

import (
	"strings"
	"testing"
)

func TestOpenSynthetic(t *testing.T) {
	s, err := Open("synthetic", OpenOptions{TrainSize: 30, TestSize: 20, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := mustSynthetic(t, SyntheticOptions{Train: 30, Test: 20,
		Seed: 4}); s.Fingerprint() != want.Fingerprint() || s.Name != "synthetic" {
		t.Errorf("%s is not the set that Synthetic draws", s.Name)
	}
}

func TestOpenMNIST(t *testing.T) {
	s, err := Open("mnist", OpenOptions{Dir: writeMNIST(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "mnist" || s.Train.Len() != 12 {
		t.Errorf("%s with %d training examples, want mnist with 12", s.Name, s.Train.Len())
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"mnist":  "no folder given: fspda data mnist fetches it",
		"cifar":  `set "cifar" is not known, want synthetic, synthetic-images, mnist, `,
		"":       `set "" is not known`,
		"MNIST ": "is not known",
	} {
		if _, err := Open(name, OpenOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", name, err, want)
		}
	}
}
