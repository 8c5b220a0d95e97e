package device

// LossScale is the dynamic loss scale of float16 gradients, which would otherwise underflow. The
// gradient of the loss is multiplied by the scale, and the parameter gradients are divided by it.
//
// A gradient with a non-finite element is replaced by 0 and halves the scale. The agent still
// performs the rest of its iteration, without weight decay: it exchanges, and its dual moves. This
// keeps the sum of the duals at zero, which skipping the whole iteration on one agent would not.
type LossScale struct {
	Scale   float64 `json:"scale"`   // 0: no loss scaling
	Good    int     `json:"good"`    // gradients since the scale last changed
	Skipped int     `json:"skipped"` // gradients that were not finite and were replaced by 0
}

// LossScaler keeps the loss scales of a Device whose programs scale losses. A scale belongs to the
// gradient vector that a program writes.
type LossScaler interface {
	// LossScale returns the scale of grad after the last run that wrote it. ok is false if there is
	// none.
	LossScale(grad Vector) (s LossScale, ok bool)
	// SetLossScale sets the scale of grad for later runs. The device must scale losses.
	SetLossScale(grad Vector, s LossScale)
}
