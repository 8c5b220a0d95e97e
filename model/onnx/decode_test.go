package onnx

import (
	"encoding/binary"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields is a decoded message: values by field number, integers as uint64 and all others as bytes.
type fields struct {
	numbers map[protowire.Number][]uint64
	bytes   map[protowire.Number][][]byte
}

func decode(t *testing.T, b []byte) fields {
	t.Helper()
	f := fields{map[protowire.Number][]uint64{}, map[protowire.Number][][]byte{}}
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			v, k := protowire.ConsumeVarint(b)
			n = k
			f.numbers[num] = append(f.numbers[num], v)
		case protowire.Fixed32Type:
			v, k := protowire.ConsumeFixed32(b)
			n = k
			f.numbers[num] = append(f.numbers[num], uint64(v))
		case protowire.BytesType:
			v, k := protowire.ConsumeBytes(b)
			n = k
			f.bytes[num] = append(f.bytes[num], v)
		default:
			t.Fatalf("field %d has the wire type %d", num, kind)
		}
		if n < 0 {
			t.Fatalf("field %d: %v", num, protowire.ParseError(n))
		}
		b = b[n:]
	}
	return f
}

// text returns a string field that occurs exactly once.
func (f fields) text(t *testing.T, num protowire.Number) string {
	t.Helper()
	if len(f.bytes[num]) != 1 {
		t.Fatalf("field %d occurs %d times, want once", num, len(f.bytes[num]))
	}
	return string(f.bytes[num][0])
}

func (f fields) number(t *testing.T, num protowire.Number) int {
	t.Helper()
	if len(f.numbers[num]) != 1 {
		t.Fatalf("field %d occurs %d times, want once", num, len(f.numbers[num]))
	}
	return int(f.numbers[num][0])
}

// packed returns a repeated integer field.
func (f fields) packed(t *testing.T, num protowire.Number) []int {
	t.Helper()
	var vs []int
	for b := []byte(f.text(t, num)); len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		vs, b = append(vs, int(v)), b[n:]
	}
	return vs
}

// array is a tensor in the order of ONNX.
type array struct {
	shape  []int
	values []float32
}

// decoded is a file prepared for evaluation.
type decoded struct {
	tensors       map[string]array
	nodes         []decodedNode
	input, output []any // lengths, and the names of free axes
	metadata      map[string]string
}

type decodedNode struct {
	operator, name, output string
	in                     []string
	ints                   map[string][]int
	floats                 map[string]float32
	lists                  map[string][]float32
}

func decodeModel(t *testing.T, file []byte) decoded {
	t.Helper()
	m := decode(t, file)
	if got := m.number(t, modelIRVersion); got != 8 {
		t.Errorf("IR version %d", got)
	}
	if got := decode(t, []byte(m.text(t, modelOpset))).number(t, opsetVersion); got != 17 {
		t.Errorf("opset %d", got)
	}
	d := decoded{tensors: map[string]array{}, metadata: map[string]string{}}
	for _, e := range m.bytes[modelMetadata] {
		entry := decode(t, e)
		d.metadata[entry.text(t, entryKey)] = entry.text(t, entryValue)
	}
	g := decode(t, []byte(m.text(t, modelGraph)))
	d.input = decodeValue(t, []byte(g.text(t, graphInput)), "input")
	d.output = decodeValue(t, []byte(g.text(t, graphOutput)), "logits")
	for _, b := range g.bytes[graphInitializer] {
		f := decode(t, b)
		if f.number(t, tensorType) != elementFloat {
			t.Errorf("%s is not of float32", f.text(t, tensorName))
		}
		raw := []byte(f.text(t, tensorRaw))
		a := array{shape: f.packed(t, tensorDims), values: make([]float32, len(raw)/4)}
		for i := range a.values {
			a.values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		if n := volume(a.shape); 4*n != len(raw) {
			t.Errorf("%s: %d bytes for the shape %v", f.text(t, tensorName), len(raw), a.shape)
		}
		d.tensors[f.text(t, tensorName)] = a
	}
	for _, b := range g.bytes[graphNode] {
		d.nodes = append(d.nodes, decodeNode(t, b))
	}
	return d
}

func decodeNode(t *testing.T, b []byte) decodedNode {
	t.Helper()
	f := decode(t, b)
	n := decodedNode{operator: f.text(t, nodeOperator), name: f.text(t, nodeName), output: f.text(t, nodeOutput),
		ints: map[string][]int{}, floats: map[string]float32{}, lists: map[string][]float32{}}
	for _, in := range f.bytes[nodeInput] {
		n.in = append(n.in, string(in))
	}
	for _, b := range f.bytes[nodeAttribute] {
		a := decode(t, b)
		name := a.text(t, attributeName)
		switch a.number(t, attributeIsType) {
		case isFloat:
			n.floats[name] = math.Float32frombits(uint32(a.number(t, attributeFloat)))
		case isInt:
			n.ints[name] = []int{a.number(t, attributeInt)}
		case isInts:
			n.ints[name] = a.packed(t, attributeInts)
		case isFloats:
			for b := []byte(a.text(t, attributeFloats)); len(b) > 0; b = b[4:] {
				n.lists[name] = append(n.lists[name], math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
		default:
			t.Errorf("attribute %s is of type %d", name, a.number(t, attributeIsType))
		}
	}
	return n
}

func decodeValue(t *testing.T, b []byte, name string) (axes []any) {
	t.Helper()
	f := decode(t, b)
	if got := f.text(t, valueName); got != name {
		t.Errorf("an end is called %q, want %q", got, name)
	}
	tensor := decode(t, []byte(decode(t, []byte(f.text(t, valueType))).text(t, typeTensor)))
	if got := tensor.number(t, typeElement); got != elementFloat && (got != elementInt64 || name != "input") {
		t.Errorf("%s has elements of type %d", name, got)
	}
	for _, b := range decode(t, []byte(tensor.text(t, typeShape))).bytes[shapeDim] {
		axis := decode(t, b)
		if len(axis.bytes[dimensionName]) > 0 {
			axes = append(axes, axis.text(t, dimensionName))
		} else {
			axes = append(axes, axis.number(t, dimensionLength))
		}
	}
	return axes
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
