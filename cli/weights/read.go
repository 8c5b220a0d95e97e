package weights

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fspda/internal/bounded"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// Weights are the parameters and buffers of a network, as a file holds them.
type Weights struct {
	X, Buffers []float32
	Batches    int // batches that its batch norm has seen: the largest num_batches_tracked
}

// Options say how Read takes a file.
type Options struct {
	Key string // configuration key that named the file, for errors; empty is init
	// NewHead are parameters from which the tensors of the last layer are taken; nil: from the file
	NewHead []float32
	// Sizes are the sizes of a language model; config.json beside the file has to say the same
	Sizes model.Transformer
}

// Read reads the weights of a network from a file: safetensors, or a state_dict that torch.save
// wrote. The file must hold exactly the tensors of the network, in their shapes, and finite
// numbers, which are converted to float32. The names are torchvision's, or Hugging Face's for a
// ResNet, or either within a wrapper of PyTorch.
func Read(path string, net *model.Network, o Options) (w Weights, err error) {
	r := reader{path: path, net: net, o: o, known: map[string]bool{}}
	if err := r.open(); err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.index()
	if err := r.language(); err != nil {
		return w, r.bad(nil, "%v", err)
	}
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
	tensorFile
	path  string
	net   *model.Network
	o     Options
	names map[string]string // names in the file by names in the network
	infos map[string]safetensors.Info
	head  string          // prefix of the names of a new last layer; empty: it is read
	known map[string]bool // the names of the file that belong to the network
	// the weights of a GPT-2 are inputs × outputs, as transformers has them
	transposed bool
}

type tensorFile interface {
	Tensors() []safetensors.Info
	bytes(name string) ([]byte, error) // bytes of a tensor, row-major
	Close() error
}

type safetensorsFile struct{ *safetensors.File }

func (f safetensorsFile) bytes(name string) ([]byte, error) {
	section, err := f.Section(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(section)
}

// index finds the names of the network in the file.
func (r *reader) index() {
	var all []string
	r.infos = map[string]safetensors.Info{}
	for _, t := range r.Tensors() {
		all = append(all, t.Name)
		r.infos[t.Name] = t
	}
	r.names = names(all)
	if r.o.NewHead != nil {
		ts := r.net.Layout().Tensors()
		last := ts[len(ts)-1].Name
		r.head = last[:strings.LastIndex(last, ".")+1]
	}
}

// bad returns the error of a file that cannot be used.
func (r *reader) bad(err error, want string, args ...any) error {
	return &train.ConfigError{Key: cmp.Or(r.o.Key, "init"), Got: r.path, Err: err, Want: fmt.Sprintf(want, args...)}
}

func (r *reader) open() (err error) {
	if st, err := os.Stat(r.path); err == nil && st.IsDir() {
		file := filepath.Join(r.path, "model.safetensors") // Hugging Face's name
		if _, err := os.Stat(file); err == nil {
			r.path = file
			return r.open()
		}
		if _, err := os.Stat(file + ".index.json"); err == nil {
			return r.bad(nil, "its weights are divided into several files, want one: save_pretrained of "+
				"transformers writes one with max_shard_size=\"100GB\"")
		}
		return r.bad(nil, "it is a folder without model.safetensors, want a file of weights: fspda export %s writes "+
			"one of a run", r.path)
	}
	if startsWith(r.path, "PK\x03\x04") || startsWith(r.path, "\x80\x02\x8a\x0a") {
		if r.tensorFile, err = openPTH(r.path); err != nil {
			return r.bad(err, "%s", convert(r.path, err))
		}
		return nil
	}
	f, err := safetensors.Open(r.path)
	if err != nil {
		return r.bad(err, "expected the folder of a run, a safetensors file, or a .pth file of torch.save")
	}
	r.tensorFile = safetensorsFile{f}
	if _, ok := f.Info("agent0/x"); ok {
		return errors.Join(r.bad(nil, "it is a checkpoint, which holds a flat vector for each agent: fspda export %s "+
			"writes its model as a file of weights", filepath.Join(filepath.Dir(r.path), "..", "..")), r.Close())
	}
	return nil
}

// IsFolder reports whether a folder has the weights of a model, as Hugging Face's libraries and
// fspda export --format hf write them, and no run.
func IsFolder(path string) bool {
	_, model := os.Stat(filepath.Join(path, "model.safetensors"))
	_, run := os.Stat(filepath.Join(path, "config.yaml"))
	return model == nil && run != nil
}

// convert says how to convert a file of PyTorch that is refused for a cause. A file with objects
// runs code of their classes as it is loaded.
func convert(path string, cause error) string {
	advice, load := "convert it (with weights_only=False if PyTorch refuses it and you trust its author) with ", "True"
	if object, ok := errors.AsType[*objectError](cause); ok && object.runsCommands() {
		return "it would run commands as PyTorch loads it: do not load it, and ask its author for a file of " +
			"torch.save(model.state_dict(), PATH)"
	} else if ok {
		advice, load = "PyTorch loads it where the modules of its classes can be imported, and runs their code, so "+
			"that its author must be trusted: convert it with ", "False"
	}
	return advice + `python3 -c "import sys, torch, safetensors.torch as s; f = sys.argv[1]; ` +
		`d = torch.load(f, map_location='cpu', weights_only=` + load + `); ` +
		`d = next((d[k] for k in ('state_dict', 'model_state_dict', 'model') if k in d), d) ` +
		`if isinstance(d, dict) else d; d = d if isinstance(d, dict) else d.state_dict(); ` +
		`s.save_file({k: v.clone().contiguous() for k, v in d.items() if isinstance(v, torch.Tensor)}, ` +
		`f + '.safetensors')" ` + quoted(path)
}

// quoted writes a path as a word of a shell.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// startsWith reports whether a file starts with these bytes. Four are enough: as the length of the
// header of a safetensors file they would be too large.
func startsWith(path, magic string) bool {
	f, err := bounded.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(magic))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == magic
}

func (r *reader) read(l *model.Layout) ([]float32, error) {
	flat := make([]float32, l.Dim())
	for _, t := range l.Parts() {
		if r.head != "" && strings.HasPrefix(t.Name, r.head) {
			copy(flat[t.Offset:], r.o.NewHead[t.Offset:t.Offset+t.Size])
			r.known[r.names[t.Name]] = true
			continue
		}
		if err := r.tensor(t, flat[t.Offset:t.Offset+t.Size]); err != nil {
			return nil, r.bad(nil, "%v", err)
		}
	}
	return flat, nil
}

func (r *reader) tensor(t model.Tensor, dst []float32) error {
	name, ok := r.names[t.Name]
	info := r.infos[name]
	r.known[name] = true
	shape := r.shapeInFile(t, info.Shape)
	fit := fmt.Sprintf("the file has to be of %s, for examples of this shape and as many classes (init_head new "+
		"draws the last layer)", r.net.Name())
	switch {
	case !ok:
		return fmt.Errorf("it has no tensor %q: %s", t.Name, fit)
	case !slices.Equal(info.Shape, shape):
		return fmt.Errorf("its tensor %q has the shape %v, want %v: %s", t.Name, info.Shape, shape, fit)
	}
	values, err := r.floats(name)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 }); i >= 0 {
		return fmt.Errorf("its tensor %q holds %v at place %d, want finite numbers: these weights diverged, take "+
			"earlier ones", t.Name, values[i], i)
	}
	r.place(t, dst, values)
	return nil
}

// rest returns the largest number of batches of a batch norm, and refuses tensors that the network
// has not.
func (r *reader) rest() (batches int, err error) {
	for _, t := range r.Tensors() {
		layer, ok := strings.CutSuffix(t.Name, batchesSeen)
		if !ok || !r.known[layer+"running_mean"] {
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

// Describe sets the network in c to the network that wrote a file, unless the network is known, and
// returns the number of classes; 0: the file does not tell.
func Describe(path string, c *train.Config, known bool) (classes int, names []string, err error) {
	r := reader{path: path, o: Options{Key: "weights"}}
	if err := r.open(); err != nil {
		return 0, nil, err
	}
	r.index()
	if f, ok := r.tensorFile.(safetensorsFile); ok {
		names = classesOf(f.Metadata())
	}
	if f, ok := r.tensorFile.(safetensorsFile); ok && !known {
		meta := f.Metadata()
		words := strings.Fields(meta["network"])
		switch text, ok := meta[metadataKeys]; {
		case ok:
			keys := c.NetworkKeys
			keys.Hidden = nil // a linear model has none
			if err = json.Unmarshal([]byte(text), &keys); err != nil {
				err = r.bad(err, "its metadata %s is damaged: name the network with --model", metadataKeys)
				break
			}
			keys.Init, keys.Head, keys.Dropout = c.Init, c.Head, c.Dropout // a file has none
			c.NetworkKeys = keys
		case len(words) >= 2 && words[0] == "mlp": // mlp 784-100-10 sigmoid, of versions without these metadata
			widths := strings.Split(words[1], "-")
			c.Model, c.Activation = words[0], cmp.Or(strings.Join(words[2:], " "), c.Activation)
			err = c.Hidden.Set(cmp.Or(strings.Join(widths[1:max(1, len(widths)-1)], ","), "none"))
		case len(words) > 0:
			c.Model = words[0]
		}
	}
	if shape := r.infos[r.names["fc.weight"]].Shape; len(shape) == 2 {
		classes = shape[0]
	}
	classes = cmp.Or(classes, len(names))
	return classes, names, errors.Join(err, r.Close())
}
