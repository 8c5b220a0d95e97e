package cudnn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/driver"
)

// library is a cuDNN that records its calls. It recommends algorithm 5, which is not deterministic,
// then 6. Timing finds 7 the fastest, which is not deterministic, then 8.
type library struct {
	calls []string
	math  Math
	fail  Status // status of timing calls
}

func (l *library) api() *API {
	record := func(what string) Status { l.calls = append(l.calls, what); return 0 }
	list := func(got *int32, all *Perf, of ...Perf) {
		*got = int32(copy(unsafe.Slice(all, maxAlgorithms), of))
	}
	recommend := func(got *int32, all *Perf) Status {
		list(got, all, Perf{Algo: 4, Status: 3000, Deterministic: 1}, Perf{Algo: 5, Memory: 10},
			Perf{Algo: 6, Memory: 20, Deterministic: 1, Math: TensorOp})
		return record("recommend")
	}
	time := func(got *int32, all *Perf, workspace uintptr) Status {
		list(got, all, Perf{Algo: 9, Memory: workspace + 1}, Perf{Algo: 7, Memory: 30, Time: 0.5, Math: TensorOp},
			Perf{Algo: 8, Deterministic: 1})
		record("time")
		return l.fail
	}
	a := &API{}
	next := uintptr(0)
	a.CreateTensor = func(out *Tensor) Status { next++; *out = Tensor(next); return 0 }
	a.CreateFilter = func(out *Filter) Status { next++; *out = Filter(next); return 0 }
	a.CreateConv = func(out *Descriptor) Status { next++; *out = Descriptor(next); return 0 }
	a.SetTensor = func(Tensor, int32, Type, int32, int32, int32, int32) Status { return 0 }
	a.SetFilter = func(Filter, Type, int32, int32, int32, int32, int32) Status { return 0 }
	a.SetConv = func(Descriptor, int32, int32, int32, int32, int32, int32, int32, Type) Status { return 0 }
	a.SetMath = func(_ Descriptor, m Math) Status { l.math = m; return 0 }
	a.DestroyTensor = func(Tensor) Status { next--; return 0 }
	a.DestroyFilter = func(Filter) Status { next--; return 0 }
	a.DestroyConv = func(Descriptor) Status { next--; return 0 }
	a.GetForward = func(_ Ptr, _ Tensor, _ Filter, _ Descriptor, _ Tensor, _ int32, got *int32, all *Perf) Status {
		return recommend(got, all)
	}
	a.GetData = func(_ Ptr, _ Filter, _ Tensor, _ Descriptor, _ Tensor, _ int32, got *int32, all *Perf) Status {
		return recommend(got, all)
	}
	a.GetFilter = func(_ Ptr, _, _ Tensor, _ Descriptor, _ Filter, _ int32, got *int32, all *Perf) Status {
		return recommend(got, all)
	}
	a.FindForward = func(_ Ptr, _ Tensor, x driver.Pointer, _ Filter, w driver.Pointer, _ Descriptor, _ Tensor,
		y driver.Pointer, _ int32, got *int32, all *Perf, workspace driver.Pointer, n uintptr) Status {
		record(fmt.Sprint(x, w, y, workspace))
		return time(got, all, n)
	}
	a.FindData = func(_ Ptr, _ Filter, w driver.Pointer, _ Tensor, y driver.Pointer, _ Descriptor, _ Tensor,
		x driver.Pointer, _ int32, got *int32, all *Perf, workspace driver.Pointer, n uintptr) Status {
		record(fmt.Sprint(x, w, y, workspace))
		return time(got, all, n)
	}
	a.FindFilter = func(_ Ptr, _ Tensor, x driver.Pointer, _ Tensor, y driver.Pointer, _ Descriptor, _ Filter,
		w driver.Pointer, _ int32, got *int32, all *Perf, workspace driver.Pointer, n uintptr) Status {
		record(fmt.Sprint(x, w, y, workspace))
		return time(got, all, n)
	}
	return a
}

// alloc records an allocation of blocks at the addresses 1, 2, 3 and 4.
func (l *library) alloc(sizes ...int) ([]driver.Pointer, func(), error) {
	l.calls = append(l.calls, fmt.Sprint("alloc ", sizes))
	return []driver.Pointer{1, 2, 3, 4}, func() { l.calls = append(l.calls, "free") }, nil
}

var small = Shape{N: 2, H: 4, W: 4, C: 8, K: 16, R: 3, S: 3, Stride: 1, Pad: 1}

// The fastest algorithm is measured once per direction, with memory of the right sizes, which is
// freed.
func TestFastest(t *testing.T) {
	l, cache := &library{}, &ChoiceCache{Dir: t.TempDir(), GPU: "fake", Version: 91002}
	h := &Handle{api: l.api()}
	for _, d := range []Direction{Forward, GradX, GradW} {
		for i := range 3 {
			l.calls, l.math = nil, 0
			if i == 2 { // a second program
				cache = &ChoiceCache{Dir: cache.Dir, GPU: cache.GPU, Version: cache.Version}
			}
			c, err := h.NewConv(small, d, Float16, TensorOp, Selection{MaxWorkspace: 100, Alloc: l.alloc, Cache: cache})
			if err != nil {
				t.Fatal(err)
			}
			if c.algo != 7 || c.Workspace != 30 || l.math != TensorOp {
				t.Errorf("direction %d: algorithm %d in %d bytes, math %d; want 7 in 30, math 1", d, c.algo,
					c.Workspace, l.math)
			}
			var want []string
			if i == 0 {
				want = []string{"alloc [512 2304 1024 100]", "1 2 3 4", "time", "free"}
			}
			if !slices.Equal(l.calls, want) {
				t.Errorf("direction %d, time %d: calls %q, want %q", d, i, l.calls, want)
			}
		}
	}
}

// In deterministic runs, and if there is no memory, the recommended algorithm is taken and nothing
// is timed.
func TestAdvised(t *testing.T) {
	none := func(...int) ([]driver.Pointer, func(), error) { return nil, nil, errors.New("none left") }
	for _, c := range []struct {
		how  Selection
		m    Math
		algo int32
		math Math
	}{
		{Selection{MaxWorkspace: 100, Deterministic: true}, TensorOp, 6, TensorOp},
		{Selection{MaxWorkspace: 100}, TensorOp, 5, 0},
		{Selection{MaxWorkspace: 100}, FMA, 5, FMA}, // the default may round
		{Selection{MaxWorkspace: 100, Alloc: none}, TensorOp, 5, 0},
	} {
		l := &library{}
		h := &Handle{api: l.api()}
		conv, err := h.NewConv(small, GradW, Float32, c.m, c.how)
		if err != nil {
			t.Fatal(err)
		}
		if conv.algo != c.algo || l.math != c.math || !slices.Equal(l.calls, []string{"recommend"}) {
			t.Errorf("%+v: algorithm %d, math %d after %q; want %d and %d", c.how, conv.algo, l.math, l.calls, c.algo,
				c.math)
		}
	}
	l := &library{}
	h := &Handle{api: l.api()}
	for _, c := range []struct {
		m    Math
		want string
		// the deterministic one uses tensor cores
	}{{FMA, "is deterministic and needs at most 100 bytes"}} {
		if _, err := h.NewConv(small, Forward, Float32, c.m, Selection{MaxWorkspace: 100,
			Deterministic: true}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	l.fail = 5000
	if _, err := h.NewConv(small, Forward, Float32, FMA, Selection{MaxWorkspace: 100, Alloc: l.alloc}); err == nil ||
		!strings.Contains(err.Error(), "timing the algorithms") {
		t.Errorf("a failure while timing: %v", err)
	}
	if l.calls[len(l.calls)-1] != "free" {
		t.Errorf("memory is not freed after a failure: %q", l.calls)
	}
}

// A file that is damaged, copied to another name, or made for another library or GPU is ignored. A
// folder that cannot be written is not an error.
func TestChoiceCache(t *testing.T) {
	dir := t.TempDir()
	open := func(gpu string, version uintptr) *ChoiceCache {
		return &ChoiceCache{Dir: dir, GPU: gpu, Version: version}
	}
	open("a", 1).put("key", Choice{Algo: 3, Memory: 7})
	get := func(c *ChoiceCache, key string) bool { _, ok := c.get(key); return ok }
	if got, ok := open("a", 1).get("key"); !ok || got != (Choice{Algo: 3, Memory: 7}) {
		t.Errorf("kept %+v (%v)", got, ok)
	}
	for what, c := range map[string]*ChoiceCache{"another GPU": open("b", 1), "another version": open("a", 2),
		"no folder": {GPU: "a", Version: 1}, "nothing": nil} {
		if get(c, "key") {
			t.Errorf("%s has the choice", what)
		}
	}
	path := open("a", 1).path("key")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string]string{
		"empty": "", "half": string(text[:len(text)/2]), "no JSON": "algo 3", "another algorithm": strings.Replace(
			string(text), `"algo":3`, `"algo":4`, 1),
		"negative memory": strings.Replace(string(text), `"memory":7`, `"memory":-7`, 1),
	} {
		if err := os.WriteFile(path, []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		if get(open("a", 1), "key") {
			t.Errorf("a damaged file (%s) is used", what)
		}
	}
	if err := os.WriteFile(open("a", 1).path("other"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if get(open("a", 1), "other") {
		t.Error("a file under another name is used")
	}
	open("a", 1).put("key", Choice{Algo: 3})
	if !get(open("a", 1), "key") {
		t.Error("a damaged file is not replaced")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	blocked := &ChoiceCache{Dir: filepath.Join(file, "sub"), GPU: "a"}
	blocked.put("key", Choice{Algo: 1})
	if !get(blocked, "key") {
		t.Error("a choice that cannot be stored is not kept in memory")
	}
}

// Two GPUs that need the same convolution at once take the same algorithm: the first measures it,
// and the second waits for its choice.
func TestChoiceOfSeveralGPUs(t *testing.T) {
	dir := t.TempDir()
	begun, goOn := make(chan bool), make(chan bool)
	conv := func(l *library, alloc func(...int) ([]driver.Pointer, func(), error)) error {
		h := &Handle{api: l.api()}
		c, err := h.NewConv(small, Forward, Float16, TensorOp, Selection{MaxWorkspace: 100, Alloc: alloc,
			Cache: &ChoiceCache{Dir: dir, GPU: "fake", Version: 91002}})
		if err == nil && c.algo != 7 {
			err = fmt.Errorf("algorithm %d, want 7", c.algo)
		}
		return err
	}
	first, second := &library{}, &library{}
	ended := make(chan error, 2)
	go func() {
		ended <- conv(first, func(sizes ...int) ([]driver.Pointer, func(), error) {
			close(begun)
			<-goOn
			return first.alloc(sizes...)
		})
	}()
	<-begun
	go func() { ended <- conv(second, second.alloc) }()
	select {
	case err := <-ended:
		t.Errorf("the second GPU did not wait: %v", err)
	case <-time.After(100 * time.Millisecond): // it would have measured by now
		close(goOn)
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		if len(second.calls) > 0 {
			t.Errorf("the second GPU measured: %q", second.calls)
		}
	}
}

// Choices go from one folder to another as lines; what the other has is kept, and damage is left
// out.
func TestChoiceLines(t *testing.T) {
	open := func(dir string) *ChoiceCache { return &ChoiceCache{Dir: dir, GPU: "a", Version: 1} }
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	for i, key := range []string{"one", "two", "three"} {
		open(from).put(key, Choice{Algo: int32(i), Engine: &Engine{Index: int64(i)}})
	}
	open(to).put("two", Choice{Algo: 9})
	lines, err := ReadChoices(from)
	if err != nil || strings.Count(string(lines), "\n") != 3 {
		t.Fatalf("%q, %v", lines, err)
	}
	damaged := strings.Replace(string(lines), `"algo":2`, `"algo":3`, 1) + "{\n\n"
	for _, text := range []string{damaged, damaged} {
		if err := AddChoices(to, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]int32{"one": 0, "two": 9} {
		if got, ok := open(to).get(key); !ok || got.Algo != want {
			t.Errorf("%s: %+v, %v; want algorithm %d", key, got, ok, want)
		}
	}
	if _, ok := open(to).get("three"); ok {
		t.Error("a damaged line was stored")
	}
	if lines, err := ReadChoices(filepath.Join(to, "none")); err != nil || len(lines) > 0 {
		t.Errorf("no folder: %q, %v", lines, err)
	}
}
