package device

// LossScale is the dynamic loss scale of gradients in float16, which would lose what is small: the
// gradient of the loss is multiplied by it, and what comes out is divided by it again.
//
// A gradient that is not finite becomes 0 and halves the scale. So an agent whose gradient is
// skipped does all else of its iteration, decay left out: it exchanges, and its dual moves. That
// keeps the sum of the duals at zero, which an agent that stood still alone would not.
type LossScale struct {
	Scale   float64 `json:"scale"`   // 0: there is none
	Good    int     `json:"good"`    // gradients since it last changed
	Skipped int     `json:"skipped"` // gradients that were not finite and became 0
}

// Scaled is a Device whose programs may scale the loss. The scale belongs to the vector that the
// gradient is written to.
type LossScaler interface {
	Device
	// LossScale is that of a vector after the latest run that wrote it; ok is false where there is
	// none.
	LossScale(grad Vector) (s LossScale, ok bool)
	// SetLossScale sets that of a vector for the runs to come. The vector is one of a device that
	// scales.
	SetLossScale(grad Vector, s LossScale)
}
