package weights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/model"
)

// Files of torch.save are read without executing anything. testdata/make.py made them with PyTorch.
func TestReadsPTH(t *testing.T) {
	net := mlp453(t)
	for _, name := range []string{"plain", "wrapped", "views"} {
		w, err := Read(filepath.Join("testdata", name+".pth"), net, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for k, v := range w.X {
			if v != float32(k)/8 {
				t.Errorf("%s: number %d is %v, want %v", name, k, v, float32(k)/8)
			}
		}
	}
}

// What is no dictionary of tensors is refused, with a line that converts it.
func TestRefusesPTH(t *testing.T) {
	for name, want := range map[string]string{
		"runs":    "makes a posix.system, want only tensors",
		"module":  "operation 0x81 is not one of those",
		"number":  "entry epoch is no tensor",
		"strided": `"fc1.weight" has the strides [1 5], want it contiguous`,
		"legacy":  "not a valid zip file",
	} {
		_, err := Read(filepath.Join("testdata", name+".pth"), mlp453(t), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "python3 -c") {
			t.Errorf("%s: error %v, want it to say %q and how to convert", name, err, want)
		}
	}
	if _, err := os.Stat("executed"); err == nil {
		t.Error("a file was executed")
	}
}

// No input makes the interpreter panic, or allocate much more than it holds.
func FuzzUnpickle(f *testing.F) {
	for _, name := range []string{"plain", "wrapped", "views", "runs"} {
		p, err := openPTH(filepath.Join("testdata", name+".pth"))
		if p == nil {
			continue
		}
		if err != nil {
			f.Fatal(err)
		}
		text, err := p.entry("data.pkl", maxPickle)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		p.Close()
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = unpickle(text)
	})
}

func mlp453(t *testing.T) *model.Network {
	t.Helper()
	net, err := model.Open("mlp", model.Options{Shape: []int{4}, Classes: 3, Hidden: []int{5}})
	if err != nil {
		t.Fatal(err)
	}
	return net
}
