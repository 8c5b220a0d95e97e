package runfolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/evaluate"
	"fspda/train/safetensors"
)

// Saved is the newest checkpoint of a run, opened to read its models.
type Saved struct {
	Config    config.Config
	Iteration int
	Agents    int
	Shape     []int // shape of an example
	Classes   int
	Batches   int // batches that batch norm had seen before the run
	// how pixels were normalised: (pixel/255 - mean)/std, by channel
	PixelMean, PixelStd []float32
	ClassNames          []string // names of the classes, by label; nil: not known

	ck *Checkpoint
}

// OpenSaved opens and verifies the newest checkpoint of a run folder. Close it after use.
func OpenSaved(run string) (*Saved, error) {
	c, err := ReadConfig(run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &FolderError{Path: run, Got: "holds no run (no config.yaml)",
			Hint: "name the folder that fspda train wrote"}
	} else if err != nil {
		return nil, &FolderError{Path: run, Got: "cannot be read", Err: err}
	}
	dir := filepath.Join(run, "checkpoints")
	names, err := listCheckpoints(dir)
	if err != nil {
		return nil, &FolderError{Path: run, Got: "its checkpoints cannot be listed", Err: err}
	}
	if len(names) == 0 {
		return nil, &FolderError{Path: run, Got: "has no checkpoint yet",
			Hint: "wait for the first one, or stop the run, which leaves one"}
	}
	ck := &Checkpoint{Path: filepath.Join(dir, names[len(names)-1])}
	if err := ck.open(nil); err != nil {
		err.Path = ck.Path
		return nil, err
	}
	s := &Saved{Config: c, Iteration: ck.Iteration, Agents: ck.Agents, Shape: ck.Shape, Classes: ck.Classes,
		Batches: ck.Batches, PixelMean: ck.PixelMean, PixelStd: ck.PixelStd, ClassNames: ck.ClassNames,
		ck: ck}
	if len(s.Shape) == 0 || s.Classes == 0 {
		return nil, errors.Join(&CheckpointError{Path: ck.Path,
			Got:  "does not say what its examples were like: an older version wrote it",
			Hint: "resume the run for a moment: the checkpoint it then leaves does"}, s.Close())
	}
	return s, nil
}

func (s *Saved) Close() error { return s.ck.file.Close() }

// Agent reads the model of an agent and its buffers; nil: no batch norm.
func (s *Saved) Agent(i int) (x, buffers []float32, err error) {
	if i < 0 || i >= s.Agents {
		return nil, nil, config.Invalid("agent", i, "the run has agents 0 to %d", s.Agents-1)
	}
	if x, err = s.load(vectorName(i, "x")); err != nil || s.ck.Buffers == 0 {
		return x, nil, err
	}
	buffers, err = s.load(vectorName(i, buffersName))
	return x, buffers, err
}

// Mean reads the mean model: the mean of the averages of weights, if agents keep some. Its buffers
// come from the last row, or before the end of the run are pooled from the agents; sizes are the
// lengths of the buffers, as in Setup.Buffers.
func (s *Saved) Mean(sizes []int) (x, buffers []float32, err error) {
	sum := make([]float64, s.ck.Dim)
	var all [][]float32
	averages := slices.Contains(s.ck.Aux, algo.AverageName)
	for i := range s.Agents {
		xi, bi, err := s.Agent(i)
		if err != nil {
			return nil, nil, err
		}
		if averages {
			if xi, err = s.load(vectorName(i, algo.AverageName)); err != nil {
				return nil, nil, err
			}
		}
		for k, v := range xi {
			sum[k] += float64(v)
		}
		if bi != nil {
			all = append(all, bi)
		}
	}
	x = make([]float32, len(sum))
	for k, v := range sum {
		x[k] = float32(v / float64(s.Agents))
	}
	if len(all) == 0 {
		return x, nil, nil
	}
	if buffers, err = s.ck.meanBuffers(); err != nil {
		return nil, nil, &CheckpointError{Path: s.ck.Path, Got: "cannot be read: batch norm of the mean model",
			Err: err}
	}
	if buffers == nil && averages {
		return nil, nil, &CheckpointError{Path: s.ck.Path,
			Got:  "has no batch norm of the average of weights, which is measured at the end of the run",
			Hint: "resume the run to its end, or choose the model of an agent"}
	}
	if buffers == nil {
		buffers = evaluate.PoolBuffers(sizes, all)
	}
	return x, buffers, nil
}

func (s *Saved) load(name string) ([]float32, error) {
	v, err := safetensors.Load[float32](s.ck.file, name)
	if err != nil {
		return nil, &CheckpointError{Path: s.ck.Path, Got: fmt.Sprintf("cannot be read: vector %s", name), Err: err}
	}
	return v, nil
}
