package device

// Features lists the abilities of a Device beyond the operations that all have. A device without
// one of them leaves its field unset.
type Features struct {
	Async   bool         // Operations and Program.Start return before their work is done.
	Host    Host         // The vectors are in the memory of the process.
	Memory  Memory       // The device has a memory of its own.
	Sampler IndexSampler // The device draws random indexes.
	Scaler  LossScaler   // Programs scale losses.
	// Fetch copies src, which is on another device, to dst without the host, and reports whether it
	// can. The lengths must be equal. Later operations on either vector come after the copy.
	Fetch func(dst, src Vector) bool
}

// Host gives access to vectors in the memory of the process, so that received data can become a
// vector without a copy.
type Host interface {
	// Floats returns the numbers of v without copying them.
	Floats(v Vector) []float32
	// Wrap returns a vector that shares the memory of numbers.
	Wrap(numbers []float32) Vector
}

// Memory forecasts and measures the memory of a Device whose vectors and programs take none of the
// host.
type Memory interface {
	// Memory returns the free and the total bytes of its memory.
	Memory() (free, total uint64, err error)
	// Opened returns the number of bytes that opening the device took, besides the memory that the
	// driver takes for every process.
	Opened() uint64
	// Taken returns the number of bytes by which the free memory has shrunk since the device was
	// opened, as the driver counts it.
	Taken() (bytes uint64, err error)
	// Block returns the bytes of one vector of n float32.
	Block(n int) uint64
	// ProgramBytes forecasts the bytes of programs that run one after the other. most is the
	// workspace of the largest, which they share. Each program also has batches of batch numbers.
	ProgramBytes(most uint64, programs, batch int) uint64
	// BranchBytes forecasts the bytes that a number of programs take beside that workspace, where they
	// compute at the same time.
	BranchBytes(programs int) uint64
	// ProductBytes forecasts the working memory of Orthogonalize operations on vectors of n numbers,
	// as many as are given, of which the largest matrix takes `largest` bytes.
	ProductBytes(largest uint64, n, vectors int) uint64
	// Overhead returns the bytes that the device keeps for work with the given number of sets of
	// vectors: recorded graphs, and kernels that libraries load on first use. They are estimated
	// unless earlier runs of the same work measured them. The error says why stored measurements
	// were not used.
	Overhead(work string, sets int) (bytes uint64, measured bool, err error)
	// KeepOverhead measures the overhead at the end of a run and stores it, so that Overhead
	// returns it in later runs of the same work. It stores nothing if the overhead cannot be told
	// apart from other work of the device.
	KeepOverhead(work string, sets int) error
	// Staging returns the bytes of host memory through which data are copied to the device: batches
	// is the number of batches, batch their length, and vector the length of vectors.
	Staging(batches, batch, vector int) uint64
}
