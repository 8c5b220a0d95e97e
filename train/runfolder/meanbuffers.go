package runfolder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fspda/train/safetensors"
)

// The last checkpoint of a run holds the batch norm with which its last row scored the mean model.
// If the run is stopped during that row, the checkpoint lacks it. The resumed run then adds a file
// of its own, and does not change the file of vectors.

// meanFile is the name of the added file.
const meanFile = "mean.safetensors"

// meanBuffers reads the batch norm of the final mean model; nil: the checkpoint has none.
func (c *Checkpoint) meanBuffers() ([]float32, error) {
	if _, ok := c.file.Info(meanBuffersName); ok {
		return safetensors.Load[float32](c.file, meanBuffersName)
	}
	f, err := safetensors.Open(filepath.Join(c.Path, meanFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := safetensors.Load[float32](f, meanBuffersName)
	if err != nil {
		return nil, err
	}
	if got, want := sum(b), f.Metadata()["sha256"]; got != want {
		return nil, fmt.Errorf("%s: its vector has the checksum %.8s…, its header says %.8s…", meanFile, got, want)
	}
	return b, nil
}

// complete adds the batch norm of the final mean model to a checkpoint that lacks it.
func (f *Folder) complete(dir string, sv CheckpointData) error {
	if sv.MeanBuffers == nil {
		return nil
	}
	file, err := safetensors.Open(filepath.Join(dir, vectorsFile))
	if err != nil {
		return err
	}
	_, has := file.Info(meanBuffersName)
	if err := file.Close(); err != nil || has {
		return err
	}
	ts := []safetensors.Tensor{{Name: meanBuffersName, Shape: []int{len(sv.MeanBuffers)}, Values: sv.MeanBuffers}}
	return replace(f.Disk, filepath.Join(dir, meanFile), func(w io.Writer) error {
		return safetensors.Write(w, ts, map[string]string{"sha256": sum(sv.MeanBuffers)})
	})
}
