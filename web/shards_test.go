package web

import (
	"testing"
)

// TestWriteReportErrors covers damaged files.
func TestReadShards(t *testing.T) {
	s, err := parseShards("shards.json", []byte(`{"classes":2,"agents":[[1,2],[3,4]],"edges":[[0,1]]}`+"\n"))
	if err != nil || s.Classes != 2 || s.Agents[1][0] != 3 || s.Edges[0][1] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := parseShards("shards.json", []byte{}); err == nil {
		t.Error("empty: no error")
	}
}
