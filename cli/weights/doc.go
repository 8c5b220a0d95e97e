// Package weights reads and writes the weights of a network as files for other programs.
//
// A safetensors file has the names and shapes of torchvision, so that PyTorch's load_state_dict
// takes it strictly, and [Read] takes it back. An ONNX file holds the whole network. Further
// formats belong here; the command that offers them is in cli/modelcmd.
package weights
