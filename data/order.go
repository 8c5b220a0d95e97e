package data

import (
	"cmp"
	"fmt"

	"fspda/internal/rng"
)

// Sampling determines how an agent iterates over its shard.
type Sampling string

const (
	// Epochs shuffles the shard every local epoch and iterates over it without replacement. The
	// last batch of an epoch may be short: 6000 examples at batch 256 are 23 batches of 256 and one
	// of 112.
	Epochs Sampling = "epochs"
	// IID samples every example of every batch uniformly, with replacement; of a text, windows that
	// begin at any token.
	IID Sampling = "iid"
	// Full uses the whole shard, in its own order, at every step, and ignores the batch size.
	Full Sampling = "full"
)

// Order determines the examples of an agent at each step. It is a pure function of (seed, agent,
// step), so a run resumes at step t from t alone. An Order caches the permutation of the last
// epoch, so it is not safe for concurrent use.
type Order struct {
	shard    []int32
	agent    int
	batch    int
	sampling Sampling
	seed     uint64

	repeat int // appearances of an example beside each other in an epoch, with Epochs; 0 means 1

	perm  []int32 // the permuted shard of epoch
	epoch int     // -1: none yet
}

// NewOrder returns the order of an agent's batches from its shard, a list of example indices, which
// it keeps and does not change. The default Sampling is Epochs. It returns an error for an empty
// shard, or, without repetition, for a batch larger than the shard.
func NewOrder(shard []int32, agent, batch int, sampling Sampling, seed uint64) (*Order, error) {
	sampling = cmp.Or(sampling, Epochs)
	switch {
	case agent < 0:
		return nil, fmt.Errorf("data: agent %d, want 0 or more", agent)
	case sampling != Epochs && sampling != IID && sampling != Full:
		return nil, fmt.Errorf("data: agent %d: sampling %q, want %s, %s or %s", agent, sampling, Epochs, IID, Full)
	case len(shard) == 0:
		return nil, fmt.Errorf("data: agent %d has no examples: use fewer agents or another partition", agent)
	case sampling == Full:
		batch = len(shard)
	case batch < 1:
		return nil, fmt.Errorf("data: agent %d: batch of %d examples, want at least 1", agent, batch)
	case sampling == Epochs && batch > len(shard):
		return nil, fmt.Errorf("data: agent %d: batch of %d examples, but its shard has only %d: use a batch of "+
			"at most %d, or a partition with larger shards, or sampling %s, which repeats examples",
			agent, batch, len(shard), len(shard), IID)
	}
	return &Order{shard: shard, agent: agent, batch: batch, sampling: sampling, seed: seed, epoch: -1}, nil
}

// StepsPerEpoch is the number of steps in which the agent sees as many examples as its shard has,
// counting the short batch as one.
func (o *Order) StepsPerEpoch() int { return (len(o.shard) + o.batch - 1) / o.batch }

// At writes the examples of a step to dst, which grows if it is too small, and returns it. It
// panics if step < 0.
func (o *Order) At(dst []int32, step int) []int32 {
	if step < 0 {
		panic(fmt.Sprintf("data: order of step %d", step))
	}
	dst = dst[:0]
	switch o.sampling {
	case Full:
		return append(dst, o.shard...)
	case IID:
		// Each batch has its own stream, keyed by the step.
		s := o.stream(step)
		for range o.batch {
			dst = append(dst, o.shard[s.IntN(len(o.shard))])
		}
		return dst
	}
	steps := o.StepsPerEpoch()
	o.permute(step / steps)
	from := step % steps * o.batch
	return append(dst, o.perm[from:min(from+o.batch, len(o.perm))]...)
}

// stream is the source of the batch of a step, with IID.
func (o *Order) stream(step int) rng.Stream {
	return rng.New(o.seed, "batch", uint64(o.agent), uint64(step))
}

// permute computes the permutation of an epoch from the shard itself: epochs are independent.
func (o *Order) permute(epoch int) {
	if epoch == o.epoch {
		return
	}
	o.perm = append(o.perm[:0], o.shard...)
	s := rng.New(o.seed, "batch", uint64(o.agent), uint64(epoch))
	s.Permute(o.perm)
	if o.repeat > 1 {
		for i := len(o.perm) - 1; i > 0; i-- { // From the end on, an entry is read before it is written.
			o.perm[i] = o.perm[i/o.repeat]
		}
	}
	o.epoch = epoch
}
