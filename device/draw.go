package device

// Law is how coordinates of a vector are drawn: Count of Dim, different and ascending.
type Sampling struct {
	Dim, Count int
	// one in each of Count equal blocks, as the mask stratified of fspda/dist; else uniform among
	// all sets, as its mask randk
	Stratified bool
}

// Drawer is a Device that draws coordinates by itself.
type IndexSampler interface {
	Device
	// DrawIndexes makes dst[i] coordinates that the law draws from the stream of fspda/internal/rng
	// whose counter is counters[i], with the bits of fspda/dist. As NewIndex does, it may reuse the
	// memory of what stands in dst: indexes that nobody needs any more, or nil.
	SampleIndexes(dst []Index, law Sampling, counters []uint64)
}
