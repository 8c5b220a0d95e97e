package selftest

// Bounds is how far what a device computes may be from the CPU engine's float32, relative to it.
type Bounds struct {
	MLP      float64 // the gradient of a network of dense layers, in length
	Residual float64 // of a residual network: a batch norm of few pixels magnifies roundings, layer by layer
	Loss     float64 // of either
	Training float64 // the loss at the end of a short training

	// a convolution of inputs that the precision holds, in length; some ways transform them, which
	// rounds more
	Convolution float64
}

// DifferencesBound is how far slopes of the loss may be from what the gradient says of them: what
// is left of the curvature of the loss.
const DifferencesBound = 0.02

// BoundsOf are those of a precision. A factor of a product has 24 bits in fp32, 11 in tf32 and
// fp16, and 8 in bf16; in 16 bits what layers hand on is rounded too. Networks have up to 50
// layers, whose errors add like steps of a random walk. On libraries that stand in for NVIDIA's
// (fspda/cuda/fakecuda) the gradients of ResNet-18 and ResNet-50 were 9e-7 and 1.4e-6 away in fp32,
// 0.036 and 0.052 in tf32, 0.036 and 0.070 in fp16, and that of ResNet-18 0.11 in bf16.
func BoundsOf(precision string) Bounds {
	switch precision {
	case "tf32":
		return Bounds{MLP: 0.005, Residual: 0.1, Loss: 0.005, Training: 0.02, Convolution: 0.003}
	case "fp16":
		return Bounds{MLP: 0.005, Residual: 0.2, Loss: 0.005, Training: 0.05, Convolution: 0.01}
	case "bf16":
		return Bounds{MLP: 0.03, Residual: 0.6, Loss: 0.03, Training: 0.1, Convolution: 0.03}
	}
	return Bounds{MLP: 1e-5, Residual: 1e-3, Loss: 1e-5, Training: 1e-3, Convolution: 1e-4}
}
