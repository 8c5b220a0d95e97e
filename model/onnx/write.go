package onnx

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"fspda/model"
)

// The format versions, both of ONNX 1.12 (2022), for compatibility with older programs.
const (
	irVersion = 8
	opset     = 17
)

// largest is the size limit of a Protocol Buffers message.
const largest = math.MaxInt32

// Write writes a network for inference: input "input" of float32, batch × channels × height ×
// width, or batch × inputs if examples are not images; height and width are free if the network
// averages over all pixels before its dense layers; output "logits", batch × classes. The input
// of a language model is int64, batch × tokens, with the logits batch × tokens × vocabulary. x are
// the parameters and buffers the statistics of batch norm, in the order of their layouts. metadata
// may be nil; it is copied to the file's metadata_props.
func Write(w io.Writer, net *model.Network, x, buffers []float32, metadata map[string]string) error {
	if len(x) != net.Dim() || len(buffers) != net.Buffers().Dim() {
		return fmt.Errorf("onnx: %s: got %d parameters and %d buffers, want %d and %d", net.Name(), len(x),
			len(buffers), net.Dim(), net.Buffers().Dim())
	}
	g, err := translate(net)
	if err != nil {
		return err
	}
	ts := append(initializers(net.Layout(), x), initializers(net.Buffers(), buffers)...)
	body := g.message(net)
	length := len(body)
	for _, t := range ts {
		length += protowire.SizeTag(graphInitializer) + protowire.SizeBytes(t.length())
	}
	head := header(metadata)
	head.open(modelGraph, length)
	if len(head)+length > largest {
		return fmt.Errorf("onnx: %s: a file of %d bytes, want at most %d: Protocol Buffers have no larger ones",
			net.Name(), len(head)+length, largest)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for _, part := range []message{head, body} {
		if _, err := out.Write(part); err != nil {
			return fmt.Errorf("onnx: writing %s: %w", net.Name(), err)
		}
	}
	for _, t := range ts {
		if err := t.write(out); err != nil {
			return fmt.Errorf("onnx: writing tensor %s: %w", t.Name, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("onnx: writing %s: %w", net.Name(), err)
	}
	return nil
}

// Start returns the bytes that every file of this package begins with.
func Start() []byte {
	var m message
	m.int(modelIRVersion, irVersion)
	m.text(modelProducer, "fspda")
	return m
}

// header encodes the fields before the graph.
func header(metadata map[string]string) message {
	var set message
	m := message(Start())
	set.int(opsetVersion, opset)
	m.message(modelOpset, set)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		var entry message
		entry.text(entryKey, key)
		entry.text(entryValue, metadata[key])
		m.message(modelMetadata, entry)
	}
	return m
}

// initializer is a tensor of a layout with its values, in layout order.
type initializer struct {
	model.Tensor
	head   message // all fields before the values
	values []float32
}

func initializers(l *model.Layout, flat []float32) []initializer {
	var ts []initializer
	for _, t := range l.Tensors() {
		i := initializer{Tensor: t, values: flat[t.Offset : t.Offset+t.Size]}
		var dims []int64
		for _, d := range t.TorchShape() {
			dims = append(dims, int64(d))
		}
		i.head.ints(tensorDims, dims)
		i.head.int(tensorType, elementFloat)
		i.head.text(tensorName, t.Name)
		i.head.open(tensorRaw, 4*t.Size)
		ts = append(ts, i)
	}
	return ts
}

func (i initializer) length() int { return len(i.head) + 4*i.Size }

// write writes the tensor as a field of the graph: values little-endian, in ONNX order.
func (i initializer) write(w *bufio.Writer) error {
	var field message
	field.open(graphInitializer, i.length())
	if _, err := w.Write(append(field, i.head...)); err != nil {
		return err
	}
	values := make([]float32, i.Size)
	i.ToTorch(values, i.values)
	return binary.Write(w, binary.LittleEndian, values)
}
