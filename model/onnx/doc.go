// Package onnx writes a trained network as an ONNX file, for inference with ONNX Runtime, in
// browsers and on phones.
//
// [Write] converts each kernel of a prediction ([fspda/model.Network.Forward]) to equivalent
// operators of opset 17 (operators.go), so a network of known kernels needs no code here. The batch
// is the only free axis. A language model takes windows of tokens of one length and predicts the
// token after each one (language.go). Images are N×C×H×W, as usual in ONNX, while package model
// uses channels-last; only filters have to be permuted. Tensors keep their names, which are
// torchvision's.
//
// The file is a ModelProto in Protocol Buffers. message.go lists the field numbers from onnx.proto3
// of github.com/onnx/onnx; protowire encodes them. Tensors are written directly to the writer, so
// the file is never held in memory.
package onnx
