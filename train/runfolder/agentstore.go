package runfolder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"fspda/internal/bounded"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/safetensors"
	"fspda/train/snapshot"
)

// AgentStore holds the checkpoints of one agent in a run of many processes. Its folder is
// agents/RANK in the run folder, on the agent's machine.
//
//	checkpoints/iter-.../   agent.safetensors, lines.bin, manifest.json
type AgentStore struct {
	Path string
	fs   Disk
	lock *flock.Flock
}

const (
	agentVectors = "agent.safetensors"
	agentStreams = "lines.bin"
	agentKeep    = 2
)

// OpenAgentStore opens the folder of an agent, or creates it. Only one process can have it open.
func OpenAgentStore(run string, rank int) (*AgentStore, error) {
	h := &AgentStore{Path: filepath.Join(run, agentsFolder, fmt.Sprintf("%03d", rank)), fs: OSDisk{}}
	if err := h.fs.MkdirAll(h.Path); err != nil {
		return nil, unusable(h.Path, "cannot be made", err)
	}
	var err error
	h.lock, err = lock(h.Path, "each agent needs a rank of its own")
	return h, err
}

// agentsFolder holds the stores of all agents on a machine, in the run folder.
const agentsFolder = "agents"

// checkOneProcess refuses a run without checkpoints of its own whose agents have some: one process
// would start over, and drop the rows.
func (f *Folder) checkOneProcess() error {
	if saved, err := agentsSaved(f.Path); err != nil || !saved {
		return err
	}
	return &FolderError{Path: f.Path, Got: "holds a run of many processes, whose checkpoints are in " + agentsFolder,
		Hint: "go on with fspda up --resume, or start each agent again with fspda agent"}
}

// agentsSaved reports whether an agent has a checkpoint of its own in a run folder.
func agentsSaved(run string) (bool, error) {
	dir := filepath.Join(run, agentsFolder)
	stores, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, &FolderError{Path: dir, Got: "cannot be read", Err: err}
	}
	return slices.ContainsFunc(stores, func(store os.DirEntry) bool {
		return LatestIteration(filepath.Join(dir, store.Name())) > 0
	}), nil
}

// CheckAgents refuses the folder of a run that was trained by one process, before an agent of many
// makes anything there.
func CheckAgents(run string) error {
	if saved, err := agentsSaved(run); err != nil || saved {
		return err
	}
	return (&Folder{Path: run}).CheckManyProcesses()
}

// CheckManyProcesses refuses a run with checkpoints of all agents together, for an agent without
// any of its own: many processes would start over, and drop the rows.
func (f *Folder) CheckManyProcesses() error {
	if LatestIteration(f.Path) == 0 {
		return nil
	}
	return &FolderError{Path: f.Path,
		Got:  "holds a run whose agents have no checkpoints of their own in " + agentsFolder,
		Hint: "go on with fspda train --resume"}
}

// SetAgentAside renames the folder of an agent that has left its run, so that a new one of its slot
// begins without it.
func SetAgentAside(run string, rank int) error {
	from := filepath.Join(run, agentsFolder, fmt.Sprintf("%03d", rank))
	for k := 1; ; k++ {
		to := filepath.Join(run, agentsFolder, fmt.Sprintf("left-%03d-%d", rank, k))
		if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
			return os.Rename(from, to)
		}
	}
}

func (h *AgentStore) Close() error { return h.lock.Unlock() }

func (h *AgentStore) Empty() bool {
	names, err := listCheckpoints(filepath.Join(h.Path, "checkpoints"))
	return err == nil && len(names) == 0
}

// agentManifest describes the checkpoint of one agent. Its lists have an entry for each agent, of
// which only its own is set. The checkpoint of agent 0 also sets the counters of the others that
// rows of metrics sum over.
type agentManifest struct {
	Manifest
	Rank        int    `json:"rank"`
	LinesSHA256 string `json:"lines_sha256"`
}

// Write saves an agent. It writes to a temporary folder, flushes, and renames.
func (h *AgentStore) Write(s *config.Setup, sn *snapshot.Snapshot, wall float64) error {
	dir := filepath.Join(h.Path, "checkpoints")
	final := filepath.Join(dir, checkpointName(sn.T))
	if _, err := os.Stat(final); err == nil {
		return nil // the agent was resumed from this one
	}
	err := publish(h.fs, final, agentKeep, 0, func(tmp string) error { return h.fill(tmp, s, sn, wall) })
	if err != nil {
		return &CheckpointError{Path: final, Got: "cannot be written", Err: err,
			Hint: "earlier checkpoints are untouched: " + writeHint(err, "start the agent again")}
	}
	return nil
}

// fill writes the files of a checkpoint.
func (h *AgentStore) fill(dir string, s *config.Setup, sn *snapshot.Snapshot, wall float64) (err error) {
	m := agentManifest{Manifest: describe(s, CheckpointData{Snapshots: []*snapshot.Snapshot{sn}, WallS: wall}),
		Rank: sn.Agent}
	m.spread(s.Graph.N, sn)
	m.Live = sn.RealTime
	sum := sha256.New()
	if m.Bytes, err = h.fs.WriteFile(filepath.Join(dir, agentVectors), func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, sum),
			tensors(s.Algo, CheckpointData{Snapshots: []*snapshot.Snapshot{sn}}), nil)
	}); err != nil {
		return err
	}
	if err := sn.DeviceErr(); err != nil {
		return err
	}
	m.SHA256 = hex.EncodeToString(sum.Sum(nil))
	lines := sha256.Sum256(sn.Streams)
	m.LinesSHA256 = hex.EncodeToString(lines[:])
	if err := writeText(h.fs, filepath.Join(dir, agentStreams), sn.Streams); err != nil {
		return err
	}
	text, err := manifestText(&m, &m.Checksum)
	if err != nil {
		return err
	}
	return writeText(h.fs, filepath.Join(dir, manifestFile), text)
}

// spread extends the lists of one agent to lists of n agents.
func (m *agentManifest) spread(n int, sn *snapshot.Snapshot) {
	m.Agents = n
	at := sn.Agent
	m.Ledgers, m.Grads, m.Losses = among(n, at, m.Ledgers), among(n, at, m.Grads), among(n, at, m.Losses)
	m.Clipped, m.Directions = among(n, at, m.Clipped), among(n, at, m.Directions)
	m.Decodes, m.Scales, m.Scalars = among(n, at, m.Decodes), among(n, at, m.Scales), among(n, at, m.Scalars)
	m.EdgeCounts, m.Clocks = among(n, at, m.EdgeCounts), among(n, at, m.Clocks)
	for i, c := range sn.LastRow {
		if i == at {
			continue
		}
		m.Ledgers[i], m.Grads[i], m.Clipped[i], m.Directions[i] = c.Ledger, c.Grads, c.Clipped, c.Directions
		if m.Decodes != nil {
			m.Decodes[i] = c.Decodes
		}
	}
}

// among returns a list of n values, of which the one at a place is that of a list of one; nil for
// an empty list.
func among[T any](n, at int, one []T) []T {
	if len(one) == 0 {
		return nil
	}
	all := make([]T, n)
	all[at] = one[0]
	return all
}

// Newest opens the newest checkpoint of the agent that is not damaged, and before which the rows of
// the run are there if this process writes them, to rows. It also reads the state of its streams.
// It returns nil if there is none. passed says why newer ones were passed over. This costs time
// only: the other processes keep the messages that an earlier checkpoint needs.
func (h *AgentStore) Newest(s *config.Setup, rank int, rows *Folder) (c *Checkpoint, streams []byte, passed []error,
	err error) {
	c, passed, err = newest(filepath.Join(h.Path, "checkpoints"), func(c *Checkpoint) (bad *CheckpointError) {
		if streams, bad = c.openAgent(s, rank); bad != nil || rows == nil {
			return bad
		}
		return rows.hasRows(s, c)
	})
	return c, streams, passed, err
}

// manifestLimit is the size of the longest manifest that is read: 4 KiB an agent and 256 bytes an
// end of an edge, or 256 MiB where no setup says how many there are.
func manifestLimit(s *config.Setup) int64 {
	if s == nil {
		return 1 << 28
	}
	return 1<<20 + 4<<10*int64(s.Graph.N) + 256*2*int64(len(s.Graph.Edges))
}

// streamsLimit is the size of the longest state of streams that is read: the log that makes a
// process ask for a checkpoint several times over, 64 messages for each agent, and all evaluations,
// which an agent in real time keeps while agent 0 is absent.
func streamsLimit(s *config.Setup) int64 {
	evaluation := int64(1+len(algo.Names(s.Algo)))*int64(s.Dim) + int64(s.BufferLen())
	return 1<<30 + 4*(64*int64(s.Dim)*int64(s.Graph.N)+evaluation*int64(1+s.EvalCount()))
}

// openAgent reads and verifies the checkpoint of one agent.
func (c *Checkpoint) openAgent(s *config.Setup, rank int) ([]byte, *CheckpointError) {
	text, err := bounded.File(filepath.Join(c.Path, manifestFile), manifestLimit(s))
	if err != nil {
		return nil, &CheckpointError{Got: "is damaged: its manifest cannot be read", Err: err}
	}
	var m agentManifest
	if e := readManifest(text, &m, &m.Manifest); e != nil {
		return nil, e
	}
	c.Manifest = m.Manifest
	if e := c.fits(s); e != nil {
		return nil, e
	}
	if m.Rank != rank {
		return nil, &CheckpointError{Got: fmt.Sprintf("is of agent %d, not %d", m.Rank, rank),
			Hint: "start each agent with the rank it had"}
	}
	lines, err := bounded.File(filepath.Join(c.Path, agentStreams), streamsLimit(s))
	if sum := sha256.Sum256(lines); err != nil || hex.EncodeToString(sum[:]) != m.LinesSHA256 {
		return nil, &CheckpointError{Got: "is damaged: " + agentStreams + " is not what its manifest says", Err: err}
	}
	vectors := filepath.Join(c.Path, agentVectors)
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
