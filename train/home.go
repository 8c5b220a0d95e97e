package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"fspda/device"
	"fspda/dist"
	"fspda/train/safetensors"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// Home is where one agent of a run of many processes keeps its own checkpoints. It is agents/RANK
// in the run folder, on the agent's machine.
//
//	checkpoints/iter-.../   agent.safetensors, lines.bin, manifest.json
type Home struct {
	Path string
	fs   disk
	lock *flock.Flock
}

const (
	homeVectors = "agent.safetensors"
	homeLines   = "lines.bin"
	homeKeep    = 2
)

// OpenHome makes the folder of an agent, or opens the one it left. No two processes have it at
// once.
func OpenHome(run string, rank int) (*Home, error) {
	h := &Home{Path: filepath.Join(run, agentsFolder, fmt.Sprintf("%03d", rank)), fs: osDisk{}}
	if err := h.fs.MkdirAll(h.Path); err != nil {
		return nil, &FolderError{Path: h.Path, Got: "cannot be made", Err: err}
	}
	h.lock = flock.New(filepath.Join(h.Path, ".lock"))
	switch ok, err := h.lock.TryLock(); {
	case err != nil:
		return nil, &FolderError{Path: h.Path, Got: "cannot be locked", Err: err}
	case !ok:
		return nil, &FolderError{Path: h.Path, Got: "is in use by another process",
			Hint: "each agent needs a rank of its own"}
	}
	return h, nil
}

// agentsFolder holds the homes of all agents on a machine, in the run folder.
const agentsFolder = "agents"

// Close lets go of the folder.
func (h *Home) Close() error { return h.lock.Unlock() }

// homeManifest describes the checkpoint of one agent. The lists over agents hold something at its
// own place alone.
type homeManifest struct {
	manifest
	Rank        int    `json:"rank"`
	LinesSHA256 string `json:"lines_sha256"`
}

// write saves an agent: written beside, flushed to the disk, renamed.
func (h *Home) write(s *Setup, sn *snapshot.Snapshot, wall float64) (err error) {
	dir := filepath.Join(h.Path, "checkpoints")
	final, tmp := filepath.Join(dir, checkpointName(sn.T)), filepath.Join(dir, ".writing")
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
			err = &CheckpointError{Path: final, Got: "cannot be written", Err: err,
				Hint: "earlier checkpoints are untouched: make room, then start the agent again"}
		}
	}()
	if _, err := os.Stat(final); err == nil {
		return nil // the one it went on from
	}
	if err := errors.Join(os.RemoveAll(tmp), h.fs.MkdirAll(tmp)); err != nil {
		return err
	}
	if err := h.fill(tmp, s, sn, wall); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return (&Folder{fs: h.fs}).prune(dir, homeKeep)
}

// fill writes the files of a checkpoint.
func (h *Home) fill(dir string, s *Setup, sn *snapshot.Snapshot, wall float64) (err error) {
	m := homeManifest{manifest: describe(s, saving{set: []*snapshot.Snapshot{sn}, wall: wall}), Rank: sn.Agent}
	m.spread(s.Graph.N, sn)
	m.Live = sn.RealTime
	sum := sha256.New()
	if m.Bytes, err = h.fs.WriteFile(filepath.Join(dir, homeVectors), func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, sum), tensors(s.Algo, saving{set: []*snapshot.Snapshot{sn}}), nil)
	}); err != nil {
		return err
	}
	if err := sn.DeviceErr(); err != nil {
		return err
	}
	m.SHA256 = hex.EncodeToString(sum.Sum(nil))
	lines := sha256.Sum256(sn.Streams)
	m.LinesSHA256 = hex.EncodeToString(lines[:])
	if _, err := h.fs.WriteFile(filepath.Join(dir, homeLines),
		func(w io.Writer) error { _, err := w.Write(sn.Streams); return err }); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	_, err = h.fs.WriteFile(filepath.Join(dir, manifestFile),
		func(w io.Writer) error { _, err := w.Write(text); return err })
	return err
}

// spread puts what the manifest holds of one agent at its place among n.
func (m *homeManifest) spread(n int, sn *snapshot.Snapshot) {
	m.Agents = n
	m.Ledgers, m.Grads, m.Losses = make([]dist.Ledger, n), make([]int, n), make([]snapshot.Losses, n)
	m.Ledgers[sn.Agent], m.Grads[sn.Agent], m.Losses[sn.Agent] = sn.Ledger, sn.Grads, sn.Losses
	if m.Decodes != nil {
		m.Decodes = make([]dist.DecodeStats, n)
		m.Decodes[sn.Agent] = sn.Decodes
	}
	if m.Scales != nil {
		m.Scales = make([]device.LossScale, n)
		m.Scales[sn.Agent] = sn.Scale
	}
	if m.Clocks != nil {
		m.Clocks = make([]simnet.ClockState, n)
		m.Clocks[sn.Agent] = sn.Clock
	}
}

// newest opens the agent's newest checkpoint, with the lines of that moment. It returns nil where
// there is none.
func (h *Home) newest(s *Setup, rank int) (*checkpoint, []byte, error) {
	dir := filepath.Join(h.Path, "checkpoints")
	names, err := listCheckpoints(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("train: cannot list the checkpoints in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	c := &checkpoint{path: filepath.Join(dir, names[len(names)-1])}
	lines, bad := c.openHome(s, rank)
	if bad != nil {
		bad.Path = c.path
		return nil, nil, bad
	}
	return c, lines, nil
}

// openHome verifies the checkpoint of one agent.
func (c *checkpoint) openHome(s *Setup, rank int) ([]byte, *CheckpointError) {
	text, err := os.ReadFile(filepath.Join(c.path, manifestFile))
	if err != nil {
		return nil, &CheckpointError{Got: "is damaged: its manifest cannot be read", Err: err}
	}
	var m homeManifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, &CheckpointError{Got: "is damaged: its manifest is not JSON", Err: err}
	}
	c.manifest = m.manifest
	if e := c.fits(s); e != nil {
		return nil, e
	}
	if m.Rank != rank {
		return nil, &CheckpointError{Got: fmt.Sprintf("is of agent %d, not %d", m.Rank, rank),
			Hint: "start each agent with the rank it had"}
	}
	lines, err := os.ReadFile(filepath.Join(c.path, homeLines))
	if sum := sha256.Sum256(lines); err != nil || hex.EncodeToString(sum[:]) != m.LinesSHA256 {
		return nil, &CheckpointError{Got: "is damaged: " + homeLines + " is not what its manifest says", Err: err}
	}
	vectors := filepath.Join(c.path, homeVectors)
	if e := c.verify(vectors); e != nil {
		return nil, e
	}
	if c.file, err = safetensors.Open(vectors); err != nil {
		return nil, &CheckpointError{Got: "is damaged", Err: err}
	}
	for _, name := range append([]string{"x"}, c.Aux...) {
		if info, ok := c.file.Info(vectorName(rank, name)); !ok || info.DType != safetensors.F32 ||
			!slices.Equal(info.Shape, []int{c.Dim}) {
			c.file.Close()
			return nil, &CheckpointError{Got: fmt.Sprintf("is damaged: no vector %s of %d float32",
				vectorName(rank, name), c.Dim)}
		}
	}
	return lines, nil
}
