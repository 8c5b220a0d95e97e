package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
	"fspda/train/safetensors"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

const (
	checkpointFormat = 1
	vectorsFile      = "agents.safetensors"
	manifestFile     = "manifest.json"
	buffersName      = "buffers"      // of an agent's batch norm
	meanBuffersName  = "mean/buffers" // of the final mean model's
)

// manifest describes a checkpoint. The vectors lie beside it; streams and batches are pure
// functions of seed and iteration.
type manifest struct {
	Format      int                 `json:"format"`
	RNG         int                 `json:"rng_version"`
	Fingerprint string              `json:"config_fingerprint"`
	Data        string              `json:"data_fingerprint"`
	Iteration   int                 `json:"iteration"`
	Agents      int                 `json:"agents"`
	Dim         int                 `json:"dim"`
	Shape       []int               `json:"shape"` // of an example
	Classes     int                 `json:"classes"`
	Algo        string              `json:"algo"`
	Aux         []string            `json:"aux"`
	WallS       float64             `json:"wall_s"`
	Ledgers     []dist.Ledger       `json:"ledgers"`
	Grads       []int               `json:"grads"`
	Buffers     int                 `json:"buffers,omitempty"`     // of an agent's batch norm
	Losses      []snapshot.Losses   `json:"losses,omitempty"`      // since the last row
	Decodes     []dist.DecodeStats  `json:"decodes,omitempty"`     // of a lattice
	Scales      []device.LossScale  `json:"loss_scales,omitempty"` // of fp16
	Links       string              `json:"links,omitempty"`       // identifies the simulated network
	Clocks      []simnet.ClockState `json:"clocks,omitempty"`      // under it
	Live        *snapshot.RealTime  `json:"live,omitempty"`        // of an agent in real time
	Bytes       int64               `json:"vectors_bytes"`
	SHA256      string              `json:"vectors_sha256"`
}

// CheckpointError reports a checkpoint that cannot be used.
type CheckpointError struct {
	Path string
	Got  string
	Hint string
	Err  error
}

func (e *CheckpointError) Error() string {
	return explain("checkpoint "+e.Path+": "+e.Got, e.Err, e.Hint)
}

// ExitCode returns 2, the exit status for bad input.
func (e *CheckpointError) ExitCode() int { return 2 }

func (e *CheckpointError) Unwrap() error { return e.Err }

func checkpointName(t int) string { return fmt.Sprintf("iter-%09d", t) }

// saving is what a checkpoint is made of.
type saving struct {
	set         []*snapshot.Snapshot // of all agents at one iteration
	wall        float64              // seconds of the run
	meanBuffers []float32            // at the end: with which the mean model was measured; nil else
}

// writeCheckpoint saves the snapshots of all agents at one iteration: written beside, flushed to
// the disk, renamed. Until the rename the earlier checkpoints are untouched; if anything fails they
// are what is left.
func (f *Folder) writeCheckpoint(s *Setup, sv saving) (err error) {
	dir := filepath.Join(f.Path, "checkpoints")
	final := filepath.Join(dir, checkpointName(sv.set[0].T))
	if _, err := os.Stat(final); err == nil {
		// the one this run went on from, verified then: writing it anew would put it at risk
		return f.complete(final, sv)
	}
	if err := f.fs.MkdirAll(dir); err != nil {
		return &CheckpointError{Path: final, Got: "cannot make its folder", Err: err}
	}
	tmp := filepath.Join(dir, ".writing")
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
			err = &CheckpointError{Path: final, Got: "cannot be written", Err: err,
				Hint: "earlier checkpoints are untouched: make room, then go on with --resume"}
		}
	}()
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := f.fs.MkdirAll(tmp); err != nil {
		return err
	}
	if err := f.fillCheckpoint(tmp, s, sv); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return f.prune(dir, s.Config.Keep)
}

// fillCheckpoint writes the vectors, then the manifest with their checksum.
func (f *Folder) fillCheckpoint(dir string, s *Setup, sv saving) (err error) {
	m := describe(s, sv)
	h := sha256.New()
	if m.Bytes, err = f.fs.WriteFile(filepath.Join(dir, vectorsFile), func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, h), tensors(s.Algo, sv),
			map[string]string{"iteration": fmt.Sprint(m.Iteration)})
	}); err != nil {
		return err
	}
	for _, sn := range sv.set {
		if err := sn.DeviceErr(); err != nil {
			return err
		}
	}
	m.SHA256 = hex.EncodeToString(h.Sum(nil))
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	_, err = f.fs.WriteFile(filepath.Join(dir, manifestFile),
		func(w io.Writer) error { _, err := w.Write(text); return err })
	return err
}

// describe makes the manifest, but for the checksum.
func describe(s *Setup, sv saving) manifest {
	m := manifest{Format: checkpointFormat, RNG: rng.Version, Fingerprint: s.Config.Fingerprint(),
		Data:      s.Set.Fingerprint(),
		Iteration: sv.set[0].T, Agents: len(
			sv.set), Dim: s.Dim, Shape: s.Set.Shape, Classes: s.Set.Classes, Algo: s.Algo.Name(), Aux: s.Algo.Aux(), WallS: sv.wall, Links: s.Links.Digest(), Buffers: s.BufferLen()}
	for _, a := range sv.set {
		m.Ledgers, m.Grads, m.Losses = append(m.Ledgers, a.Ledger), append(m.Grads, a.Grads), append(m.Losses, a.Losses)
		if s.Lattice != nil {
			m.Decodes = append(m.Decodes, a.Decodes)
		}
		if s.Config.Precision == "fp16" {
			m.Scales = append(m.Scales, a.Scale)
		}
		if s.HasClocks() {
			m.Clocks = append(m.Clocks, a.Clock)
		}
	}
	return m
}

// tensors lists every vector of every agent. One at a time comes to the host, when it is written.
func tensors(a algo.Algorithm, sv saving) []safetensors.Tensor {
	var ts []safetensors.Tensor
	var host []float32
	add := func(name string, dev device.Device, v device.Vector) {
		get := func() []float32 {
			if cap(host) < v.Len() {
				host = make([]float32, v.Len())
			}
			host = host[:v.Len()]
			dev.Read(host, v)
			return host
		}
		ts = append(ts, safetensors.Tensor{Name: name, Shape: []int{v.Len()}, Values: safetensors.Lazy{Len: v.Len(),
			Get: get}})
	}
	for _, s := range sv.set {
		add(vectorName(s.Agent, "x"), s.Device, s.X)
		for i, name := range a.Aux() {
			add(vectorName(s.Agent, name), s.Device, s.Aux[i])
		}
		if s.Buffers != nil {
			add(vectorName(s.Agent, buffersName), s.Device, s.Buffers)
		}
		for _, peer := range slices.Sorted(maps.Keys(s.Duals)) {
			add(vectorName(s.Agent, edgeName(peer)), s.Device, s.Duals[peer])
		}
	}
	if sv.meanBuffers != nil {
		ts = append(ts, safetensors.Tensor{Name: meanBuffersName, Shape: []int{len(sv.meanBuffers)},
			Values: sv.meanBuffers})
	}
	return ts
}

// edgeName is that of the dual of the edge to a peer.
func edgeName(peer int) string { return fmt.Sprintf("edge%d", peer) }

func vectorName(agent int, name string) string { return fmt.Sprintf("agent%d/%s", agent, name) }

// prune removes all checkpoints but the newest, of which there is at least one.
func (f *Folder) prune(dir string, keep int) error {
	names, err := listCheckpoints(dir)
	if err != nil {
		return err
	}
	for _, n := range names[:max(0, len(names)-keep)] {
		if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
			return err
		}
	}
	return nil
}

// listCheckpoints names the finished checkpoints of a folder, oldest first.
func listCheckpoints(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "iter-") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Standing is the iteration of the newest checkpoint in a run folder, from which a resumed run goes
// on; 0 where there is none.
func Standing(run string) int {
	names, err := listCheckpoints(filepath.Join(run, "checkpoints"))
	if err != nil || len(names) == 0 {
		return 0
	}
	t, err := strconv.Atoi(strings.TrimPrefix(names[len(names)-1], "iter-"))
	if err != nil {
		return 0 // no name of ours: opening it will say so
	}
	return t
}

// checkpoint is one that was found whole and fit to go on from.
type checkpoint struct {
	manifest
	path string
	file *safetensors.File
}

// openCheckpoint finds the newest checkpoint and verifies it against its checksum and the setup. It
// returns nil where there is none.
func (f *Folder) openCheckpoint(s *Setup) (*checkpoint, error) {
	dir := filepath.Join(f.Path, "checkpoints")
	names, err := listCheckpoints(dir)
	if err != nil {
		return nil, fmt.Errorf("train: cannot list the checkpoints in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	c := &checkpoint{path: filepath.Join(dir, names[len(names)-1])}
	hint := "remove this folder to start the run over"
	if len(names) > 1 {
		hint = "remove this folder to go on from " + names[len(names)-2]
	}
	if err := c.open(s); err != nil {
		err.Path = c.path
		if err.Hint == "" {
			err.Hint = hint
		}
		return nil, err
	}
	return c, nil
}

// open reads and verifies it, and that it fits the setup, if there is one.
func (c *checkpoint) open(s *Setup) *CheckpointError {
	text, err := os.ReadFile(filepath.Join(c.path, manifestFile))
	if err != nil {
		return &CheckpointError{Got: "is damaged: its manifest cannot be read", Err: err}
	}
	if err := json.Unmarshal(text, &c.manifest); err != nil {
		return &CheckpointError{Got: "is damaged: its manifest is not JSON", Err: err}
	}
	if s != nil {
		if e := c.fits(s); e != nil {
			return e
		}
	}
	vectors := filepath.Join(c.path, vectorsFile)
	if e := c.verify(vectors); e != nil {
		return e
	}
	if c.file, err = safetensors.Open(vectors); err != nil {
		return &CheckpointError{Got: "is damaged", Err: err}
	}
	if e := c.complete(); e != nil {
		c.file.Close()
		return e
	}
	return nil
}

// complete refuses a file that lacks a vector.
func (c *checkpoint) complete() *CheckpointError {
	check := func(agent int, name string, length int) *CheckpointError {
		info, ok := c.file.Info(vectorName(agent, name))
		if !ok || info.DType != safetensors.F32 || !slices.Equal(info.Shape, []int{length}) {
			return &CheckpointError{Got: fmt.Sprintf("is damaged: no vector %s of %d float32", vectorName(agent, name),
				length)}
		}
		return nil
	}
	for i := range c.Agents {
		for _, name := range append([]string{"x"}, c.Aux...) {
			if e := check(i, name, c.Dim); e != nil {
				return e
			}
		}
		if c.Buffers > 0 {
			if e := check(i, buffersName, c.Buffers); e != nil {
				return e
			}
		}
	}
	return nil
}

// otherData says how the data of a checkpoint differs from what is loaded now, by their
// fingerprints: in the decoder of its pictures alone, or altogether.
func otherData(there, here string) *CheckpointError {
	pictures, was, _ := strings.Cut(there, "-")
	if same, is, ok := strings.Cut(here, "-"); ok && same == pictures {
		return &CheckpointError{Got: fmt.Sprintf(
			"was made with pictures decoded by %q, here they are by %q: the two differ in the last bits", was, is),
			Hint: fmt.Sprintf("resume with --jpeg %s, on a machine that has it, or choose another output folder", was)}
	}
	return &CheckpointError{Got: "was made on other data than is loaded now (the contents differ)",
		Hint: "give it the same files, or choose another output folder"}
}

// fits compares the manifest with what is about to run.
func (c *checkpoint) fits(s *Setup) *CheckpointError {
	switch {
	case c.Format != checkpointFormat || c.RNG != rng.Version:
		return &CheckpointError{Got: fmt.Sprintf(
			"has format %d and random streams of version %d, this program %d and %d", c.Format, c.RNG, checkpointFormat, rng.Version),
			Hint: "resume it with the program that wrote it"}
	case c.Fingerprint != s.Config.Fingerprint() && c.Fingerprint != s.Config.FingerprintWithDevice():
		return &CheckpointError{Got: "belongs to another configuration",
			Hint: "resume with the configuration in the run's config.yaml, or choose another output folder"}
	case c.Data != s.Set.Fingerprint():
		return otherData(c.Data, s.Set.Fingerprint())
	case c.Dim != s.Dim || c.Agents != len(s.Shards) || c.Algo != s.Algo.Name() || !slices.Equal(c.Aux, s.Algo.Aux()) ||
		len(c.Ledgers) != c.Agents || len(c.Grads) != c.Agents || s.Lattice != nil && len(c.Decodes) != c.Agents:
		return &CheckpointError{Got: "is damaged: its manifest contradicts its configuration"}
	case c.Buffers != s.BufferLen() || c.Losses != nil && len(c.Losses) != c.Agents:
		return &CheckpointError{Got: fmt.Sprintf(
			"does not fit the network: it holds %d buffers of batch norm, the network has %d", c.Buffers, s.BufferLen())}
	case c.Links != s.Links.Digest():
		return &CheckpointError{Got: "was made with other simulated links, or without: its virtual time would not be that of one network",
			Hint: "resume with the same file of links, or start over in another folder"}
	case s.HasClocks() && len(c.Clocks) != c.Agents:
		return &CheckpointError{Got: "is damaged: it lacks the virtual times of its agents"}
	case c.Iteration < 0 || c.Iteration > s.Config.Iterations:
		return &CheckpointError{Got: fmt.Sprintf("is damaged: iteration %d of a run of %d", c.Iteration,
			s.Config.Iterations)}
	}
	return nil
}

func (c *checkpoint) verify(path string) *CheckpointError {
	f, err := os.Open(path)
	if err != nil {
		return &CheckpointError{Got: "is damaged: its vectors cannot be read", Err: err}
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return &CheckpointError{Got: "is damaged: its vectors cannot be read", Err: err}
	}
	if sum := hex.EncodeToString(h.Sum(nil)); n != c.Bytes || sum != c.SHA256 {
		return &CheckpointError{Got: fmt.Sprintf(
			"is damaged: %s has %d bytes and checksum %.8s…, its manifest says %d and %.8s…", vectorsFile, n, sum, c.Bytes, c.SHA256)}
	}
	return nil
}

// restore gives an agent its vectors and counters back.
func (c *checkpoint) restore(a *agent) error {
	load := func(name string, v device.Vector) error {
		host := make([]float32, v.Len())
		if err := safetensors.LoadInto(c.file, vectorName(a.id, name), host); err != nil {
			return &CheckpointError{Path: c.path, Got: "cannot be read", Err: err}
		}
		a.dev.Write(v, host)
		return nil
	}
	if err := load("x", a.state.X); err != nil {
		return err
	}
	for i, name := range c.Aux {
		if err := load(name, a.state.Aux[i]); err != nil {
			return err
		}
	}
	if b := a.gradients.buffers; b != nil {
		if err := load(buffersName, b); err != nil {
			return err
		}
	}
	a.exchange.ledger, a.gradients.count = c.Ledgers[a.id], c.Grads[a.id]
	if c.Losses != nil { // one of an older version has none: the first row then knows of fewer batches
		a.gradients.meter = c.Losses[a.id]
	}
	if c.Decodes != nil {
		a.exchange.codec.decodes = c.Decodes[a.id]
	}
	if len(c.Scales) == c.Agents {
		a.gradients.scale = c.Scales[a.id]
	}
	if len(c.Clocks) == c.Agents {
		a.clock.Restore(c.Clocks[a.id])
		a.time = c.Clocks[a.id].At
	}
	return nil
}
