package weights

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"fspda/internal/pickle"
	"fspda/train/safetensors"
)

// pthFile is a file of torch.save: a zip of a pickle, which describes the tensors, and of their
// numbers. The pickle is read by an interpreter that knows only the operations for a dictionary of
// tensors and calls nothing; it refuses everything else.
type pthFile struct {
	path    string
	zip     *zip.ReadCloser
	folder  string // folder in the zip
	tensors map[string]pthTensor
	infos   []safetensors.Info
}

// pthTensor is a tensor as the pickle describes it.
type pthTensor struct {
	storage        pthStorage
	offset         int64 // position in the storage, in numbers
	shape, strides []int
}

// pthStorage is a file of numbers in the zip.
type pthStorage struct {
	dtype safetensors.DType
	key   string
}

// maxPickle is the largest pickle that is read; the pickle of ResNet-152 has 100 kB.
const maxPickle = 16 << 20

func openPTH(name string) (f *pthFile, err error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	f = &pthFile{path: name, zip: z, tensors: map[string]pthTensor{}}
	if err := f.read(); err != nil {
		z.Close()
		return nil, err
	}
	return f, nil
}

// read interprets the pickle.
func (f *pthFile) read() error {
	at := slices.IndexFunc(f.zip.File, func(z *zip.File) bool { return path.Base(z.Name) == "data.pkl" })
	if at < 0 {
		return fmt.Errorf("it is a zip without data.pkl, want one that torch.save wrote")
	}
	f.folder = path.Dir(f.zip.File[at].Name)
	text, err := f.entry("data.pkl", maxPickle)
	if err != nil {
		return err
	}
	if order, err := f.entry("byteorder", 16); err == nil && string(order) != "little" {
		return fmt.Errorf("its numbers have the byte order %q, want little", order)
	}
	top, err := tensorsOf(text)
	if err != nil {
		return err
	}
	for _, key := range []string{"state_dict", "model_state_dict", "model"} {
		if inner, ok := top.Get(key).(*pickle.Dict); ok {
			top = inner
			break
		}
	}
	for i, k := range top.Keys {
		t, ok := top.Values[i].(pthTensor)
		name, isName := k.(string)
		if !ok || !isName {
			return fmt.Errorf("its entry %v is no tensor, want a dictionary of tensors by name", k)
		}
		f.tensors[name] = t
		f.infos = append(f.infos, safetensors.Info{Name: name, DType: t.storage.dtype, Shape: t.shape})
	}
	return nil
}

// entry reads a file of the zip, which has a checksum, if it is not longer than limit.
func (f *pthFile) entry(name string, limit uint64) ([]byte, error) {
	z, err := f.zip.Open(path.Join(f.folder, name))
	if err != nil {
		return nil, fmt.Errorf("it lacks %s", name)
	}
	defer z.Close()
	st, err := z.Stat()
	if err != nil || uint64(st.Size()) > limit {
		return nil, fmt.Errorf("its entry %s has %d bytes, want at most %d", name, st.Size(), limit)
	}
	if h, ok := st.Sys().(*zip.FileHeader); !ok || h.Method != zip.Store {
		return nil, fmt.Errorf("its entry %s is compressed, which torch.save does not do", name)
	}
	return io.ReadAll(z)
}

func (f *pthFile) Tensors() []safetensors.Info { return f.infos }

func (f *pthFile) Close() error { return f.zip.Close() }

// bytes returns the numbers of a tensor, row-major.
func (f *pthFile) bytes(name string) ([]byte, error) {
	t := f.tensors[name]
	n, width := int64(1), t.storage.dtype.Width()
	for i, d := range slices.Backward(t.shape) {
		if d > 1 && int64(t.strides[i]) != n {
			return nil, fmt.Errorf("its tensor %q has the strides %v, want it contiguous: %s", name, t.strides,
				convert(f.path, nil))
		}
		n *= int64(d)
	}
	raw, err := f.entry(path.Join("data", t.storage.key), 1<<40)
	if err != nil {
		return nil, err
	}
	from, to := t.offset*width, (t.offset+n)*width
	if t.offset < 0 || t.offset > 1<<40 || from > to || to > int64(len(raw)) {
		return nil, fmt.Errorf("its tensor %q ends at byte %d of %d: the file is damaged", name, to, len(raw))
	}
	return raw[from:to], nil
}

// storages are the types of storages, by their names in torch.
var storages = map[string]safetensors.DType{"FloatStorage": safetensors.F32, "DoubleStorage": safetensors.F64,
	"HalfStorage": safetensors.F16, "BFloat16Storage": safetensors.BF16, "LongStorage": safetensors.I64,
	"ByteStorage": safetensors.U8, "IntStorage": "I32", "BoolStorage": "BOOL"}

// tensorsOf reads the dictionary of tensors that torch.save pickles.
func tensorsOf(text []byte) (*pickle.Dict, error) {
	v, err := pickle.Load(text, torch{})
	if err != nil {
		return nil, err
	}
	if d, ok := v.(*pickle.Dict); ok {
		return d, nil
	}
	return nil, errors.New("it holds no dictionary of tensors")
}

// torch makes the tensors of a pickle of torch.save.
type torch struct{}

// SetState sets attributes of a dictionary, which are not needed.
func (torch) SetState(object, _ any) error {
	if _, ok := object.(*pickle.Dict); !ok {
		return fmt.Errorf("it sets attributes of %T", object)
	}
	return nil
}

// Persistent makes a storage of a persistent id: ("storage", type, key, device, length).
func (torch) Persistent(id any) (any, error) {
	t, ok := id.([]any)
	if ok && len(t) == 5 && t[0] == "storage" {
		kind, _ := t[1].(pickle.Global)
		key, named := t[2].(string)
		if dtype, known := storages[strings.TrimPrefix(string(kind), "torch.")]; known && named &&
			path.Base(key) == key {
			return pthStorage{dtype, key}, nil
		}
	}
	return nil, fmt.Errorf("it refers to something that is no storage of numbers")
}

// Construct knows only the classes and functions that a dictionary of tensors needs.
func (torch) Construct(g pickle.Global, args []any) (any, error) {
	switch {
	case g == "collections.OrderedDict" && len(args) == 0:
		return &pickle.Dict{}, nil
	case g == "torch._utils._rebuild_parameter" && len(args) > 0:
		if t, ok := args[0].(pthTensor); ok {
			return t, nil
		}
	case g == "torch._utils._rebuild_tensor_v2" && len(args) >= 4:
		s, ok := args[0].(pthStorage)
		offset, isOffset := args[1].(int64)
		shape, err := ints(args[2])
		strides, err2 := ints(args[3])
		if ok && isOffset && err == nil && err2 == nil && len(shape) == len(strides) {
			return pthTensor{s, offset, shape, strides}, nil
		}
	}
	return nil, &objectError{g}
}

// objectError reports a pickle that makes something else than dictionaries of tensors.
type objectError struct{ class pickle.Global }

func (e *objectError) Error() string { return fmt.Sprintf("it makes a %s, want only tensors", e.class) }

// runsCommands reports whether what is made is no part of a model but a call of the system.
func (e *objectError) runsCommands() bool {
	module, _, _ := strings.Cut(string(e.class), ".")
	return slices.Contains([]string{"os", "posix", "nt", "subprocess", "sys", "builtins", "__builtin__", "runpy",
		"shutil", "socket", "pty", "importlib", "webbrowser", "commands"}, module)
}

// ints reads a tuple of lengths.
func ints(v any) (out []int, err error) {
	t, ok := v.([]any)
	size := int64(1)
	for _, e := range t {
		n, isInt := e.(int64)
		if !isInt || n < 0 || n > 1<<31 || size > 1<<40/max(n, 1) {
			return nil, fmt.Errorf("its tensors have no lengths")
		}
		size *= max(n, 1)
		out = append(out, int(n))
	}
	if !ok {
		return nil, fmt.Errorf("its tensors have no lengths")
	}
	return out, nil
}
