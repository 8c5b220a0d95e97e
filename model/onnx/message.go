package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of onnx.proto3, by message. Only written fields are listed.
const (
	modelIRVersion protowire.Number = 1
	modelProducer  protowire.Number = 2
	modelGraph     protowire.Number = 7
	modelOpset     protowire.Number = 8
	modelMetadata  protowire.Number = 14

	opsetVersion protowire.Number = 2

	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2

	graphNode        protowire.Number = 1
	graphName        protowire.Number = 2
	graphInitializer protowire.Number = 5
	graphInput       protowire.Number = 11
	graphOutput      protowire.Number = 12

	nodeInput     protowire.Number = 1
	nodeOutput    protowire.Number = 2
	nodeName      protowire.Number = 3
	nodeOperator  protowire.Number = 4
	nodeAttribute protowire.Number = 5

	attributeName   protowire.Number = 1
	attributeFloat  protowire.Number = 2
	attributeInt    protowire.Number = 3
	attributeFloats protowire.Number = 7
	attributeInts   protowire.Number = 8
	attributeIsType protowire.Number = 20

	tensorDims protowire.Number = 1
	tensorType protowire.Number = 2
	tensorName protowire.Number = 8
	tensorRaw  protowire.Number = 9

	valueName protowire.Number = 1
	valueType protowire.Number = 2

	typeTensor      protowire.Number = 1
	typeElement     protowire.Number = 1
	typeShape       protowire.Number = 2
	shapeDim        protowire.Number = 1
	dimensionLength protowire.Number = 1
	dimensionName   protowire.Number = 2
)

// Enumerations of onnx.proto3.
const (
	elementFloat = 1 // TensorProto.FLOAT
	elementInt64 = 7 // TensorProto.INT64

	isFloat  = 1 // AttributeProto.FLOAT
	isInt    = 2 // AttributeProto.INT
	isFloats = 6 // AttributeProto.FLOATS
	isInts   = 7 // AttributeProto.INTS
)

type message []byte

func (m *message) int(field protowire.Number, v int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *message) float(field protowire.Number, v float32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), math.Float32bits(v))
}

func (m *message) text(field protowire.Number, v string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

// ints appends a packed repeated field.
func (m *message) ints(field protowire.Number, vs []int64) {
	var packed message
	for _, v := range vs {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	m.message(field, packed)
}

// floats appends a packed repeated field.
func (m *message) floats(field protowire.Number, vs []float32) {
	var packed message
	for _, v := range vs {
		packed = protowire.AppendFixed32(packed, math.Float32bits(v))
	}
	m.message(field, packed)
}

func (m *message) message(field protowire.Number, v message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

// open starts a field of the given length, whose bytes the caller appends.
func (m *message) open(field protowire.Number, length int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.BytesType), uint64(length))
}
