package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fspda/train/safetensors"
)

// The last checkpoint of a run holds the batch norm with which its last row measured the mean
// model. A run that is stopped while it makes that row leaves the checkpoint without; when it is
// resumed, and the row there, a file is put beside the vectors, which stay untouched.

// meanFile is that file.
const meanFile = "mean.safetensors"

// meanBuffers reads the batch norm of the final mean model, nil where the checkpoint has none.
func (ck *checkpoint) meanBuffers() ([]float32, error) {
	if _, ok := ck.file.Info(meanBuffersName); ok {
		return safetensors.Load[float32](ck.file, meanBuffersName)
	}
	f, err := safetensors.Open(filepath.Join(ck.path, meanFile))
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

// complete adds the batch norm of the final mean model to a checkpoint that was left without.
func (f *Folder) complete(dir string, sv saving) error {
	if sv.meanBuffers == nil {
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
	tmp := filepath.Join(dir, writing(meanFile))
	ts := []safetensors.Tensor{{Name: meanBuffersName, Shape: []int{len(sv.meanBuffers)}, Values: sv.meanBuffers}}
	if _, err := f.fs.WriteFile(tmp, func(w io.Writer) error {
		return safetensors.Write(w, ts, map[string]string{"sha256": sum(sv.meanBuffers)})
	}); err != nil {
		os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, meanFile)); err != nil {
		return err
	}
	return syncDir(dir)
}
