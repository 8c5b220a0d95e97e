package web

import (
	"path/filepath"
	"testing"
)

// TestWriteReportErrors covers damaged files.
func TestReadShards(t *testing.T) {
	dir := folder(t, "shards.json", `{"classes":2,"agents":[[1,2],[3,4]],"edges":[[0,1]]}`+"\n", "empty.json", "")
	s, err := readShards(filepath.Join(dir, "shards.json"))
	if err != nil || s.Classes != 2 || s.Agents[1][0] != 3 || s.Edges[0][1] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := readShards(filepath.Join(dir, "absent.json")); s != nil || err != nil {
		t.Errorf("absent: %+v, %v", s, err)
	}
	if _, err := readShards(filepath.Join(dir, "empty.json")); err == nil {
		t.Error("empty: no error")
	}
}
