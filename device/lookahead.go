package device

// BatchGatherer is a Device that computes the gradients of several agents together.
type BatchGatherer interface {
	Device
	// GatherWithGradient is Gather from a vector at which the next operation computes a gradient.
	// It may be done together with that.
	GatherWithGradient(dst, src Vector, idx Index)
}
