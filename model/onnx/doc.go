// Package onnx writes a trained network as an ONNX file: for ONNX Runtime, browsers, phones, and
// every other program that predicts with it.
//
// [Write] walks what a network computes of one example ([fspda/model.Network.Forward]) and writes
// each kernel as the operators of opset 17 that compute the same (operators.go). So a network that
// is made of known kernels needs no line here. The batch is the one free axis. An image comes as
// ONNX has it, N×C×H×W, where the package model has the channels last: filters are turned, nothing
// else is. Tensors keep their names, which are torchvision's.
//
// The file is a ModelProto in Protocol Buffers. message.go has the fields that are written, by the
// numbers that onnx.proto3 of github.com/onnx/onnx gives them; the bytes are laid out by protowire.
// The numbers of a tensor go straight to the writer, so that a file is never in memory.
package onnx
