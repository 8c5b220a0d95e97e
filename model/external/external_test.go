package external_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/model/external"
)

// client returns the command of the client in testdata.
func client(t testing.TB, fault string) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	path, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/mlp.py")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("PYTHONPATH='%s' FAULT='%s' exec python3 '%s' 5", path, fault, script)
}

// twin is a network of this program, and the same one computed by the client.
type twin struct {
	dev      *cpu.Device
	ours     *model.Engine
	theirs   *external.Engine
	batch    device.Batch
	printed  *bytes.Buffer
	gradient device.Vector
	x        device.Vector

	program   *external.Program
	described external.Description
	examples  external.Examples
}

func newTwin(t testing.TB, command string, timeout time.Duration) *twin {
	t.Helper()
	set, err := data.Synthetic(data.SyntheticOptions{Train: 40, Test: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{dev: cpu.New(cpu.Memory(external.Memory)), printed: &bytes.Buffer{}}
	o := model.Options{Shape: set.Shape, Classes: set.Classes, Loss: model.LossOptions{WeightDecay: 0.01}}
	external1 := o
	o.Hidden = []int{5}
	net, err := model.Open("mlp", o)
	if err != nil {
		t.Fatal(err)
	}
	w.ours = model.NewEngine(net, w.dev)
	p := external.New(external.Options{Command: command, Timeout: timeout, Output: w.printed})
	t.Cleanup(p.Close)
	e := external.Examples{Shape: set.Shape, Classes: set.Classes}
	d, err := p.Ask(e)
	if err != nil {
		t.Fatal(err)
	}
	external1.External = d.External
	if net, err = model.Open("external", external1); err != nil {
		t.Fatal(err)
	}
	w.program, w.described, w.examples = p, d, e
	w.theirs = external.NewEngine(net, p, d, e, w.dev)
	if err := set.Train.Gather(&w.batch, []int32{0, 7, 3}); err != nil {
		t.Fatal(err)
	}
	w.x, w.gradient = w.dev.NewVector(net.Dim()), w.dev.NewVector(net.Dim())
	w.dev.Write(w.x, w.ours.Init(3))
	return w
}

// compare fails unless the numbers of two sides agree.
func compare(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-5*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: number %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

func wide(v []float32) (all []float64) {
	for _, x := range v {
		all = append(all, float64(x))
	}
	return all
}

// The network that a client computes has the gradients, losses, scores and logits of ours.
func TestEngineIsTheNetworkOfItsClient(t *testing.T) {
	w := newTwin(t, client(t, ""), time.Minute)
	if w.theirs.Name() != w.ours.Name() || w.theirs.Dim() != w.ours.Dim() {
		t.Fatalf("%s of %d parameters, want %s of %d", w.theirs.Name(), w.theirs.Dim(), w.ours.Name(), w.ours.Dim())
	}
	if a, b := w.theirs.Describe().Sizes(), w.ours.Describe().Sizes(); !slices.Equal(a, b) {
		t.Fatalf("tensors of %v, want %v", a, b)
	}
	want := w.dev.NewVector(w.ours.Dim())
	for _, n := range []int{3, 1, 2} {
		b := w.batch.Slice(0, n)
		loss, err := w.theirs.Grad(w.gradient, w.x, b)
		if err != nil {
			t.Fatal(err)
		}
		wantLoss, err := w.ours.Grad(want, w.x, b)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "loss", []float64{loss}, []float64{wantLoss})
		compare(t, "gradient", wide(w.dev.Floats(w.gradient)), wide(w.dev.Floats(want)))
		var got, expect [3]float64
		if got[0], got[1], got[2], err = w.theirs.Score(w.x, b); err != nil {
			t.Fatal(err)
		}
		if expect[0], expect[1], expect[2], err = w.ours.Score(w.x, b); err != nil {
			t.Fatal(err)
		}
		compare(t, "score", got[:], expect[:])
		logits, wantLogits := make([]float64, 10*n), make([]float64, 10*n)
		none := w.dev.NewVector(0)
		err = errors.Join(w.theirs.Predict(logits, w.x, none, b), w.ours.Predict(wantLogits, w.x, none, b))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "logits", logits, wantLogits)
	}
	if err := w.theirs.Initialize(2); err != nil {
		t.Fatal(err)
	}
	if x := w.theirs.Init(2); math.Abs(float64(x[1])-math.Sin(6)/10) > 1e-7 {
		t.Errorf("initial number 1 is %g, want %g", x[1], math.Sin(6)/10)
	}
}

// Frozen tensors and step sizes of tensors change gradients, like the gradients of our networks.
func TestFactors(t *testing.T) {
	w := newTwin(t, client(t, ""), time.Minute)
	var got [2][]float64
	for i, e := range []interface {
		Layout() *model.Layout
		WithFactors(frozen []string, factors []model.Factor) (*model.Network, error)
	}{w.ours, w.theirs} {
		net, err := e.WithFactors([]string{"fc1.bias"}, []model.Factor{{Pattern: "fc2", Factor: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		m := interface {
			Grad(dst, x device.Vector, b device.Batch) (float64, error)
		}(model.NewEngine(net, w.dev))
		if i == 1 {
			m = external.NewEngine(net, w.program, w.described, w.examples, w.dev)
		}
		if _, err := m.Grad(w.gradient, w.x, w.batch); err != nil {
			t.Fatal(err)
		}
		got[i] = wide(w.dev.Floats(w.gradient))
	}
	compare(t, "gradient", got[1], got[0])
	bias, _ := w.ours.Layout().Tensor("fc1.bias")
	if got[1][bias.Offset] != 0 || got[1][0] == 0 {
		t.Errorf("the gradient of a frozen tensor begins with %g, of another with %g", got[1][bias.Offset], got[1][0])
	}
}

// A vector that is not in shared memory gives the same bits.
func TestVectorsElsewhere(t *testing.T) {
	w := newTwin(t, client(t, ""), time.Minute)
	if _, err := w.theirs.Grad(w.gradient, w.x, w.batch); err != nil {
		t.Fatal(err)
	}
	plain := cpu.New()
	x, g := plain.NewVector(w.ours.Dim()), plain.NewVector(w.ours.Dim())
	plain.Write(x, w.dev.Floats(w.x))
	if _, err := w.theirs.Grad(g, x, w.batch); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plain.Floats(g), w.dev.Floats(w.gradient)) {
		t.Error("other bits")
	}
}

// A client that fails once is started again, and the call repeated: with the same bits.
func TestFailedCallsAreRepeated(t *testing.T) {
	for _, kind := range []string{"crash", "exit", "raise", "hang", "garbage"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if kind == "hang" {
				limit = 3 * time.Second // a gradient that takes longer is repeated, too
			}
			w := newTwin(t, client(t, kind+"@2@"+filepath.Join(t.TempDir(), "once")), limit)
			if _, err := w.theirs.Grad(w.gradient, w.x, w.batch); err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(w.dev.Floats(w.gradient))
			r := rng.New(1, "test")
			for i := range w.dev.Floats(w.gradient) {
				w.dev.Floats(w.gradient)[i] = r.Float32()
			}
			if _, err := w.theirs.Grad(w.gradient, w.x, w.batch); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(w.dev.Floats(w.gradient), want) {
				t.Error("the repeated gradient has other bits")
			}
			if text := w.printed.String(); !strings.Contains(text, "is started again") {
				t.Errorf("printed %q", text)
			}
		})
	}
}

// A client that always fails is an error with what it said.
func TestErrorsOfClients(t *testing.T) {
	for kind, want := range map[string]string{"crash": "it ended without an answer\na line from the model",
		"exit": "the model gave up", "raise": "raise ValueError(\"gradient of another shape\")",
		"garbage": "its answer is not a line of JSON"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t, client(t, kind+"@1"), time.Minute)
			_, err := w.theirs.Grad(w.gradient, w.x, w.batch)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "asked for grad") {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
	t.Run("hang", func(t *testing.T) {
		t.Parallel()
		for limit := time.Second; ; limit *= 2 { // in which a slow machine comes to the fault
			w := newTwin(t, client(t, "hang@1"), limit)
			_, err := w.theirs.Grad(w.gradient, w.x, w.batch)
			want := fmt.Sprintf("asked for grad: no answer within %v: it hangs, or needs a longer client_timeout\n",
				limit)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want %q in it", err, want)
			}
			if strings.Contains(err.Error(), "in fault\n") {
				return
			}
			if limit > time.Minute {
				t.Fatalf("error %v, want the place where it hangs", err)
			}
		}
	})
	w := newTwin(t, client(t, "nan@1"), time.Minute)
	if loss, err := w.theirs.Grad(w.gradient, w.x, w.batch); err != nil || !math.IsNaN(loss) {
		t.Errorf("loss %v, error %v, want NaN, by which a run has diverged", loss, err)
	}
}

// Commands that are no clients.
func TestRefusedPrograms(t *testing.T) {
	for command, want := range map[string]string{"": "give the command that starts it",
		"true": "it ended without an answer", "no-such-program-at-all": "not found",
		"echo >&3 '{\"protocol\": 7}'; sleep 1": "version 7 of the protocol, want 1"} {
		p := external.New(external.Options{Command: command, Timeout: time.Minute, Output: &bytes.Buffer{}})
		_, err := p.Ask(external.Examples{Shape: []int{3}, Classes: 2})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", command, err, want)
		}
		p.Close()
	}
}

func TestMain(m *testing.M) {
	os.Unsetenv("FSPDA_CONTROL")
	os.Exit(m.Run())
}

// The memory of a client is that of its process, without the vectors.
func TestClientMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell it")
	}
	w := newTwin(t, client(t, ""), time.Minute)
	before := w.program.ClientMemory()
	if before < 1<<20 || before > 1<<33 {
		t.Errorf("a client has %d bytes, want some megabytes", before)
	}
	w.program.Close()
	if got := w.program.ClientMemory(); got != 0 {
		t.Errorf("without a client %d bytes", got)
	}
}
