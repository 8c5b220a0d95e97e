package runfolder

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"fspda/data"
	"fspda/model"
	"fspda/train/config"
)

// config.yaml is the last file of a new folder: if it exists, all others do.
func TestConfigIsWrittenLast(t *testing.T) {
	s := resolve(t)
	d := &listing{Disk: OSDisk{}}
	f := &Folder{Path: filepath.Join(t.TempDir(), "run"), Disk: d}
	if err := errors.Join(f.create(s), f.Close()); err != nil {
		t.Fatal(err)
	}
	if want := []string{".shards.json.writing", ".config.yaml.writing"}; !slices.Equal(d.names, want) {
		t.Errorf("wrote %v, want %v", d.names, want)
	}
}

// listing records which files are written.
type listing struct {
	Disk
	names []string
}

func (d *listing) WriteFile(path string, write func(io.Writer) error) (int64, error) {
	d.names = append(d.names, filepath.Base(path))
	return d.Disk.WriteFile(path, write)
}

// resolve resolves a small configuration.
func resolve(t *testing.T) *config.Setup {
	t.Helper()
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Agents, c.Graph, c.Batch = 5, "ring", 16
	s, err := c.Resolve(set, network{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// network is a model of four parameters.
type network struct{}

func (network) Dim() int { return 4 }
func (network) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(4)}
}
