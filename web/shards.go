package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// shards holds shards.json: how many examples of each class each agent holds, and the graph.
type shards struct {
	Classes int     `json:"classes"`
	Agents  [][]int `json:"agents"` // [agent][class]: number of examples
	Edges   [][]int `json:"edges"`  // pairs of agents that the base graph connects
}

// maxExamples is the largest valid count, so that sums cannot overflow.
const maxExamples = 1 << 40

// parseShards parses a shards.json; name is used in errors.
func parseShards(name string, b []byte) (*shards, error) {
	if b == nil {
		return nil, nil
	}
	s := &shards{}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("web: %s: found %s, want {\"classes\":…,\"agents\":…,\"edges\":…}: %w", name, excerpt(b),
			err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("web: %s: something follows the closing brace at byte %d", name, dec.InputOffset())
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("web: %s: %w", name, err)
	}
	return s, nil
}

// check validates counts and indices.
func (s *shards) check() error {
	if s.Classes < 0 {
		return fmt.Errorf("classes is %d, want at least 0", s.Classes)
	}
	for i, row := range s.Agents {
		if len(row) != s.Classes {
			return fmt.Errorf("agent %d has counts of %d classes, want %d", i, len(row), s.Classes)
		}
		for c, n := range row {
			if n < 0 || n > maxExamples {
				return fmt.Errorf("agent %d holds %d examples of class %d, want 0 to %d", i, n, c, int64(maxExamples))
			}
		}
	}
	for k, e := range s.Edges {
		if len(e) != 2 {
			return fmt.Errorf("edge %d is %v, want two agents", k, e)
		}
		for _, i := range e {
			if i < 0 || i >= len(s.Agents) {
				return fmt.Errorf("edge %d is %v, want agents from 0 to %d", k, e, len(s.Agents)-1)
			}
		}
	}
	return nil
}
