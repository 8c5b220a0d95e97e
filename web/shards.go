package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// shards holds shards.json: how many examples of each class each agent holds, and the graph.
type shards struct {
	Classes int     `json:"classes"`
	Agents  [][]int `json:"agents"` // [agent][class]: number of examples
	Edges   [][]int `json:"edges"`  // of the base graph, pairs of agents
}

// maxExamples is the largest valid count, so that sums cannot overflow.
const maxExamples = 1 << 40

// readShards reads shards.json; nil if it does not exist.
func readShards(path string) (*shards, error) {
	b, err := optional(path)
	if b == nil {
		return nil, err
	}
	return parseShards(path, b)
}

// parseShards parses a shards.json; name is used in errors.
func parseShards(name string, b []byte) (*shards, error) {
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

// optional reads a file. It returns nil without an error if the file does not exist.
func optional(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("web: read: %w", err)
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}
