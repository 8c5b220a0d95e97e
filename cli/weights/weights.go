package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fspda/internal/wholefile"
	"fspda/model"
	"fspda/model/onnx"
	"fspda/train"
	"fspda/train/safetensors"
)

// batchesSeen is the tensor in which PyTorch counts the batches of a batch norm.
const batchesSeen = "num_batches_tracked"

// Tensors returns the tensors of a network for a file. Filters have the order outputs, inputs,
// height, width. batches becomes num_batches_tracked of each batch norm.
func Tensors(net *model.Network, x, buffers []float32, batches int) []safetensors.Tensor {
	var ts []safetensors.Tensor
	add := func(l *model.Layout, flat []float32) {
		for _, t := range l.Parts() {
			values := make([]float32, t.Size)
			t.ToTorch(values, flat[t.Offset:t.Offset+t.Size])
			ts = append(ts, safetensors.Tensor{Name: t.Name, Shape: t.TorchShape(), Values: values})
		}
	}
	add(net.Layout(), x)
	if net.Buffers().Dim() == 0 {
		return ts
	}
	add(net.Buffers(), buffers)
	for _, t := range net.Buffers().Tensors() {
		if layer, ok := strings.CutSuffix(t.Name, "running_var"); ok {
			ts = append(ts, safetensors.Tensor{Name: layer + batchesSeen, Shape: []int{},
				Values: []int64{int64(batches)}})
		}
	}
	// wider types first keep all tensors aligned
	slices.SortStableFunc(ts, func(a, b safetensors.Tensor) int { return width(b) - width(a) })
	return ts
}

func width(t safetensors.Tensor) int {
	if _, ok := t.Values.([]int64); ok {
		return 8
	}
	return 4
}

// Metadata returns the metadata of a file with a model of a run with configuration c: of names the
// model, as mean or agent3.
func Metadata(run, of string, iteration int, net *model.Network, c train.Config) map[string]string {
	keys := c.NetworkKeys
	keys.Init, keys.Head, keys.Dropout = "", "", 0 // belong to the run
	text, _ := json.Marshal(keys)                  // numbers and texts
	return map[string]string{"network": net.Name(), "model": of, "run": run, "iteration": fmt.Sprint(iteration),
		metadataKeys: string(text)}
}

// metadataKeys is the name in the metadata of the keys of the configuration that make a network, in
// JSON.
const metadataKeys = "config"

// metadataClasses is the name in the metadata of the names of the classes, by label, in JSON.
const metadataClasses = "classes"

// AddClasses adds the names of the classes, by label, to the metadata of a file, if they are known.
func AddClasses(meta map[string]string, names []string) {
	if len(names) > 0 {
		text, _ := json.Marshal(names) // texts
		meta[metadataClasses] = string(text)
	}
}

// classesOf returns the names of the classes in the metadata of a file; nil: it has none.
func classesOf(meta map[string]string) (names []string) {
	_ = json.Unmarshal([]byte(meta[metadataClasses]), &names) // another program may use the word
	return names
}

// Save writes a safetensors file. No reader ever sees half a file.
func Save(path string, ts []safetensors.Tensor, meta map[string]string) error {
	meta = maps.Clone(meta)
	if meta != nil {
		meta["format"] = "pt" // PyTorch's loaders look for it
	}
	return saveFile(path, func(w io.Writer) error { return safetensors.Write(w, ts, meta) })
}

// SaveONNX writes an ONNX file. No reader ever sees half a file.
func SaveONNX(path string, net *model.Network, x, buffers []float32, meta map[string]string) error {
	return saveFile(path, func(w io.Writer) error { return onnx.Write(w, net, x, buffers, meta) })
}

// Exported reports whether a regular file is a model that [Save] or [SaveONNX] wrote with
// [Metadata].
func Exported(path string) bool {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false
	}
	if startsWith(path, onnxStart) {
		return true
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return false
	}
	meta := f.Metadata()
	return f.Close() == nil && meta["network"] != "" && meta["run"] != ""
}

// onnxStart is the beginning of the files of SaveONNX: the version and the producer.
var onnxStart = string(onnx.Start())

// saveFile writes a file and moves it to its path when it is complete.
func saveFile(path string, write func(w io.Writer) error) error {
	err := wholefile.PublishBy(path, write)
	var system *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &system):
		return &train.ConfigError{Key: "--out", Got: path, Err: err,
			Want: "it cannot be written: make room, or choose another file"}
	}
	return &train.ConfigError{Key: "--format", Got: filepath.Ext(path), Err: err,
		Want: "the network cannot be written in this format: choose another one, such as --format safetensors"}
}
