package weights

import (
	"os"
	"os/exec"
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
		"module":  "makes a torch.nn.modules.linear.Linear, want only tensors",
		"number":  "entry epoch is no tensor",
		"strided": `"fc1.weight" has the strides [1 5], want it contiguous`,
		"legacy":  "not a valid zip file",
	} {
		_, err := Read(filepath.Join("testdata", name+".pth"), mlp453(t), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "python3 -c") {
			t.Errorf("%s: error %v, want it to say %q and how to convert", name, err, want)
		}
	}
	_, err := Read(filepath.Join("testdata", "runs.pth"), mlp453(t), Options{})
	if err == nil || !strings.Contains(err.Error(), "makes a posix.system, want only tensors") ||
		!strings.Contains(err.Error(), "do not load it") || strings.Contains(err.Error(), "python3") {
		t.Errorf("a file that runs a command: %v", err)
	}
	if _, err := os.Stat("executed"); err == nil {
		t.Error("a file was executed")
	}
}

// The line that converts a file gives a shell the path as it is, loads objects only where the file
// has some, and is Python.
func TestConvertsPTH(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	content, err := os.ReadFile(filepath.Join("testdata", "module.pth"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whole.pth", "a b.pth", "it's.pth", "$(touch executed)`touch executed`.pth", `"\.pth`,
		"caf\u00e9.pth"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path, mlp453(t), Options{})
		if err == nil {
			t.Fatalf("%s was read", path)
		}
		_, line, _ := strings.Cut(err.Error(), "convert it with ")
		shown, err := exec.Command("sh", "-c", `python3() { printf '%s\n%s\n%s' "$1" "$2" "$3"; }; `+line).Output()
		words := strings.SplitN(string(shown), "\n", 3)
		if err != nil || len(words) != 3 || words[0] != "-c" || words[2] != path ||
			!strings.Contains(words[1], "weights_only=False") {
			t.Fatalf("%s: %v: the shell sees %q", line, err, words)
		}
		if python, err := exec.LookPath("python3"); err == nil {
			check := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.argv[1])", words[1])
			if text, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", words[1], err, text)
			}
		}
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
		_, _ = tensorsOf(text)
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
