package selftest

// Bounds holds the allowed differences between a device and the CPU engine's float32, relative to
// the latter.
type Bounds struct {
	MLP float64 // norm of the gradient error of a network of dense layers, or of a language model
	// the same for a residual network: batch norms over few pixels amplify rounding errors, layer
	// by layer
	Residual float64
	Loss     float64 // loss of a network
	Training float64 // final loss of a short training

	// norm of the error of a convolution whose inputs are exact in the precision; some
	// implementations transform them, which adds rounding errors
	Convolution float64
}

// DifferencesBound is the allowed relative difference between slopes of the loss and the gradient:
// the effect of the loss's curvature.
const DifferencesBound = 0.02

// BoundsOf returns the bounds of a precision. The factors of a product have 24 bits in fp32, 11 in
// tf32 and fp16, and 8 in bf16; in 16 bits the activations are rounded too. Networks have up to 50
// layers, whose errors add up like a random walk. With the fake libraries
// (fspda/internal/testing/fakecuda) the gradient errors of ResNet-18 and ResNet-50 were 9e-7 and
// 1.4e-6 in fp32, 0.036 and 0.052 in tf32, 0.036 and 0.070 in fp16; the error of ResNet-18 in bf16
// was 0.11.
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
