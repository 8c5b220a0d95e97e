package runfolder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"fspda/train/config"
	"fspda/train/evaluate"
	"fspda/train/metric"
	"fspda/train/safetensors"
)

// bestFile and bestMetrics are the files of checkpoints/best. The first is read; the second repeats
// its row for users.
const (
	bestFolder  = "best"
	bestFile    = "mean.safetensors"
	bestMetrics = "metrics.json"
)

// BestModel is the mean model of the row with the largest test accuracy after the start.
type BestModel struct {
	Row     metric.Row
	Mean    []float32
	Buffers []float32 // buffers of batch norm that measured it; nil without
}

// writeBest replaces the best model by the mean model of an evaluation, atomically.
func (f *Folder) writeBest(s *config.Setup, ev evaluate.Evaluation) error {
	dir := filepath.Join(f.Path, "checkpoints", bestFolder)
	failed := func(err error) error {
		return &CheckpointError{Path: dir, Got: "cannot be written", Err: err,
			Hint: "the best model before and the checkpoints are untouched: " + writeHint(err, "resume with --resume")}
	}
	if err := f.Disk.MkdirAll(dir); err != nil {
		return failed(err)
	}
	row, err := json.Marshal(ev.Row)
	if err != nil {
		return err
	}
	ts := []safetensors.Tensor{{Name: "mean/x", Shape: []int{len(ev.Mean)}, Values: ev.Mean}}
	if ev.Buffers != nil {
		ts = append(ts, safetensors.Tensor{Name: meanBuffersName, Shape: []int{len(ev.Buffers)}, Values: ev.Buffers})
	}
	about := map[string]string{"row": string(row), "config_fingerprint": s.Config.Stored().Fingerprint(),
		"sha256": sum(ev.Mean, ev.Buffers)}
	if err := replace(f.Disk, filepath.Join(dir, bestFile), func(w io.Writer) error {
		return safetensors.Write(w, ts, about)
	}); err != nil {
		return failed(err)
	}
	if err := replaceText(f.Disk, filepath.Join(dir, bestMetrics), append(row, '\n')); err != nil {
		return failed(err)
	}
	return nil
}

// sum returns the checksum of vectors in the order and format of a file.
func sum(vectors ...[]float32) string {
	h := sha256.New()
	buf := make([]byte, 0, 1<<16)
	for _, v := range vectors {
		for len(v) > 0 {
			n := min(len(v), cap(buf)/4)
			buf = buf[:0]
			for _, x := range v[:n] {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
			h.Write(buf)
			v = v[n:]
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadBest reads and verifies the best mean model of a run folder. The error wraps os.ErrNotExist
// if there is none.
func ReadBest(run string) (*BestModel, error) {
	path := filepath.Join(run, "checkpoints", bestFolder, bestFile)
	damaged := func(err error) error {
		return &CheckpointError{Path: path, Got: "is damaged", Err: err, Hint: "take the newest checkpoint instead"}
	}
	f, err := safetensors.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, damaged(err)
	}
	defer f.Close()
	b := &BestModel{}
	if err := json.Unmarshal([]byte(f.Metadata()["row"]), &b.Row); err != nil {
		return nil, damaged(fmt.Errorf("its row of metrics: %w", err))
	}
	if b.Mean, err = safetensors.Load[float32](f, "mean/x"); err != nil {
		return nil, damaged(err)
	}
	if _, ok := f.Info(meanBuffersName); ok {
		if b.Buffers, err = safetensors.Load[float32](f, meanBuffersName); err != nil {
			return nil, damaged(err)
		}
	}
	if got, want := sum(b.Mean, b.Buffers), f.Metadata()["sha256"]; got != want {
		return nil, damaged(fmt.Errorf("its vectors have the checksum %.8s…, its header says %.8s…", got, want))
	}
	return b, nil
}
