package device

// Sampling describes a random index: Count distinct ascending coordinates out of Dim.
type Sampling struct {
	Dim, Count int
	// Stratified selects one coordinate in each of Count equal blocks (the mask "stratified" of
	// fspda/dist). Otherwise all sets are equally likely (its mask "randk").
	Stratified bool
}

// IndexSampler generates random indexes on a Device.
type IndexSampler interface {
	// SampleIndexes sets dst[i] to coordinates sampled from the stream of fspda/internal/rng with
	// counter counters[i], bit-identical to fspda/dist. It may reuse the memory of the old dst[i],
	// which is nil or an Index that is no longer used.
	SampleIndexes(dst []Index, sampling Sampling, counters []uint64)
}
