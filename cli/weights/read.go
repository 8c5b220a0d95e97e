package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// Weights are the parameters and buffers of a network, as a file holds them.
type Weights struct {
	X, Buffers []float32
	Batches    int // that its batch norm has seen: the largest num_batches_tracked
}

// Read reads the weights of a network from a safetensors file. The file must hold exactly the
// tensors of the network, in their shapes, and finite numbers.
func Read(path string, net *model.Network) (w Weights, err error) {
	r := reader{path: path, net: net, known: map[string]bool{}}
	if err := r.open(); err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if w.X, err = r.read(net.Layout()); err != nil {
		return w, err
	}
	if w.Buffers, err = r.read(net.Buffers()); err != nil {
		return w, err
	}
	w.Batches, err = r.rest()
	return w, err
}

// reader reads the weights of a network from a file.
type reader struct {
	*safetensors.File
	path  string
	net   *model.Network
	known map[string]bool // the tensors of the network
}

// bad returns the error of a file that cannot be used.
func (r *reader) bad(err error, want string, args ...any) error {
	return &train.ConfigError{Key: "init", Got: r.path, Err: err, Want: fmt.Sprintf(want, args...)}
}

func (r *reader) open() (err error) {
	if st, err := os.Stat(r.path); err == nil && st.IsDir() {
		return r.bad(nil, "it is a folder, want a file of weights: fspda export %s writes one of a run", r.path)
	}
	if r.File, err = safetensors.Open(r.path); err != nil {
		return r.bad(err, "expected a safetensors file with the tensors of %s", r.net.Name())
	}
	if _, ok := r.Info("agent0/x"); ok {
		return errors.Join(r.bad(nil, "it is a checkpoint, which holds a flat vector for each agent: fspda export %s "+
			"writes its model as a file of weights", filepath.Join(filepath.Dir(r.path), "..", "..")), r.Close())
	}
	return nil
}

// read reads the tensors of a layout.
func (r *reader) read(l *model.Layout) ([]float32, error) {
	flat := make([]float32, l.Dim())
	for _, t := range l.Tensors() {
		r.known[t.Name] = true
		if err := r.tensor(t, flat[t.Offset:t.Offset+t.Size]); err != nil {
			return nil, r.bad(nil, "%v", err)
		}
	}
	return flat, nil
}

// tensor reads one tensor of floating-point numbers.
func (r *reader) tensor(t model.Tensor, dst []float32) error {
	info, ok := r.Info(t.Name)
	shape := t.TorchShape()
	fit := fmt.Sprintf("the file has to be of %s, for examples of this shape and as many classes", r.net.Name())
	switch {
	case !ok:
		return fmt.Errorf("it has no tensor %q: %s", t.Name, fit)
	case !slices.Equal(info.Shape, shape):
		return fmt.Errorf("its tensor %q has the shape %v, want %v: %s", t.Name, info.Shape, shape, fit)
	}
	raw, err := r.bytes(t.Name)
	if err != nil {
		return err
	}
	values, ok := safetensors.Floats(info.DType, raw)
	if !ok {
		return fmt.Errorf("its tensor %q is of type %s, want F32, F64, F16 or BF16", t.Name, info.DType)
	}
	if i := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 }); i >= 0 {
		return fmt.Errorf("its tensor %q holds %v at place %d, want finite numbers: these weights diverged, take "+
			"earlier ones", t.Name, values[i], i)
	}
	t.FromTorch(dst, values)
	return nil
}

func (r *reader) bytes(name string) ([]byte, error) {
	section, err := r.Section(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(section)
}

// rest returns the largest number of batches of a batch norm, and refuses tensors that the network
// has not.
func (r *reader) rest() (batches int, err error) {
	for _, t := range r.Tensors() {
		layer, ok := strings.CutSuffix(t.Name, batchesSeen)
		if !ok || !r.known[layer+"running_var"] {
			if !r.known[t.Name] {
				return 0, r.bad(nil, "it has a tensor %q of shape %v, which %s has not: the file is of another network",
					t.Name, t.Shape, r.net.Name())
			}
			continue
		}
		raw, err := r.bytes(t.Name)
		if err != nil {
			return 0, r.bad(err, "read the file again")
		}
		if n := uint64(0); t.DType == safetensors.I64 && len(raw) == 8 {
			if n = binary.LittleEndian.Uint64(raw); n > math.MaxInt32 {
				return 0, r.bad(nil, "its tensor %q is %d, want a number of batches", t.Name, int64(n))
			}
			batches = max(batches, int(n))
		}
	}
	return batches, nil
}
