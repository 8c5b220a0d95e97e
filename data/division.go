package data

// Division is a set that is divided among agents.
type Division struct {
	Set    *Set      // the set whose training examples the shards divide
	Shards [][]int32 // examples of Set.Train by agent

	counts func() [][]int
}

// Counts returns how much of each class each agent holds: examples, or for a text the tokens of its
// documents by their class. Element [i][c] belongs to class c at agent i.
func (d Division) Counts() [][]int { return d.counts() }

// shards lists the examples of each agent.
func (s *Set) shards(p Partition, agents int, seed uint64) ([][]int32, error) {
	if by, ok := p.(writerPartition); ok && s.writers != nil {
		return by.dealWriters(s.writers, agents)
	}
	return p.Split(s.Train.Labels, s.Classes, agents, seed)
}

// Divide divides the training examples among agents. The windows of a text do not leave the part of
// their agent. The result shares the memory of s, which the caller closes.
func (s *Set) Divide(p Partition, agents int, seed uint64) (Division, error) {
	if s.Text != nil {
		return s.divideText(p, agents, seed)
	}
	shards, err := s.shards(p, agents, seed)
	return Division{Set: s, Shards: shards, counts: func() [][]int {
		return Histogram(s.Train.Labels, s.Classes, shards)
	}}, err
}
