package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"fspda/internal/bounded"
)

// File reads the shards from a file: a JSON list of index lists, or text with one agent per line,
// indices separated by spaces or commas; empty lines and lines starting with # are ignored.
// Unlisted examples stay unused. The seed is not used.
type File struct{ Path string }

func (p File) String() string { return "file(" + p.Path + ")" }

// Split implements [Partition]. It returns an error if the file cannot be read, the number of lists
// is not the number of agents, a list is empty, an index is outside [0,len(labels)) or an index
// occurs twice.
func (p File) Split(labels []int32, classes, agents int, _ uint64) ([][]int32, error) {
	if err := checkSplit(labels, classes, agents); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	raw, err := bounded.File(p.Path, 1<<30)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	shards, err := parseShards(bounded.Unmarked(raw))
	if err == nil {
		err = checkShards(shards, len(labels), agents)
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return shards, nil
}

func parseShards(raw []byte) ([][]int32, error) {
	if trimmed := bytes.TrimSpace(raw); bytes.HasPrefix(trimmed, []byte("[")) {
		var shards [][]int32
		if err := json.Unmarshal(trimmed, &shards); err != nil {
			return nil, fmt.Errorf("JSON: %w: want a list of lists of example numbers", err)
		}
		return shards, nil
	}
	var shards [][]int32
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var shard []int32
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
			v, err := strconv.ParseInt(field, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q, want example numbers separated by spaces or commas", number, field)
			}
			shard = append(shard, int32(v))
		}
		shards = append(shards, shard)
	}
	return shards, nil
}

func checkShards(shards [][]int32, examples, agents int) error {
	if len(shards) != agents {
		return fmt.Errorf("%d lists, want %d, one for each agent", len(shards), agents)
	}
	owner := make([]int32, examples) // agent+1
	for i, shard := range shards {
		if len(shard) == 0 {
			return fmt.Errorf("the list of agent %d is empty", i)
		}
		for _, e := range shard {
			if e < 0 || int(e) >= examples {
				return fmt.Errorf("agent %d lists example %d, want 0 to %d", i, e, examples-1)
			}
			if owner[e] != 0 {
				return fmt.Errorf("example %d is listed by agent %d and again by agent %d, want each example once", e,
					owner[e]-1, i)
			}
			owner[e] = int32(i + 1)
		}
	}
	return nil
}
