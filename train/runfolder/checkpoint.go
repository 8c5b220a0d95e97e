package runfolder

import (
	"bytes"
	"cmp"
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
	"fspda/internal/bounded"
	"fspda/internal/rng"
	"fspda/internal/wholefile"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/membership"
	"fspda/train/safetensors"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// CheckpointVersion is the version of a checkpoint's manifest. Version 1, without counts, and
// version 2, without a checksum of the manifest itself, are read.
const CheckpointVersion = 3

// MembersFile is the file of a run folder that holds the changes of the members up to the newest
// checkpoint.
const MembersFile = "members.jsonl"

const (
	vectorsFile     = "agents.safetensors"
	manifestFile    = "manifest.json"
	buffersName     = "buffers"      // file of the buffers of an agent's batch norm
	meanBuffersName = "mean/buffers" // file of the buffers of the final mean model
)

// Manifest describes a checkpoint, in manifest.json next to the file of vectors. Random streams and
// batches are pure functions of seed and iteration and need no state.
type Manifest struct {
	Origin
	Content
	AgentCounters
	VirtualTime
	Checksum
}

// Origin identifies the versions, the configuration and the data from which a checkpoint was made.
type Origin struct {
	Format      int    `json:"format"`
	RNG         int    `json:"rng_version"`
	Fingerprint string `json:"config_fingerprint"`
	Data        string `json:"data_fingerprint"`
	// values that the fingerprint covers, by key, which say what differs where it does
	Values map[string]string `json:"config,omitempty"`
	// digests of the files that the configuration names, by key
	Files map[string]string `json:"files,omitempty"`
}

// Content describes the vectors of a checkpoint.
type Content struct {
	Iteration int      `json:"iteration"`
	Agents    int      `json:"agents"`
	Dim       int      `json:"dim"`
	Shape     []int    `json:"shape"` // shape of an example
	Classes   int      `json:"classes"`
	Algo      string   `json:"algo"`
	Aux       []string `json:"aux"`
	WallS     float64  `json:"wall_s"`
	Batches   int      `json:"batches_before,omitempty"` // batches that batch norm had seen before the run
	// how pixels were normalised: (pixel/255 - mean)/std, by channel
	PixelMean []float32 `json:"pixel_mean,omitempty"`
	PixelStd  []float32 `json:"pixel_std,omitempty"`
	// names of the classes, by label; empty: not known
	ClassNames []string `json:"class_names,omitempty"`
}

// AgentCounters lists the counters of the agents.
type AgentCounters struct {
	Ledgers []dist.Ledger      `json:"ledgers"`
	Grads   []int              `json:"grads"`
	Buffers int                `json:"buffers,omitempty"`     // length of the buffers of an agent's batch norm
	Losses  []snapshot.Losses  `json:"losses,omitempty"`      // losses since the last row
	Decodes []dist.DecodeStats `json:"decodes,omitempty"`     // statistics of decoding a lattice
	Scales  []device.LossScale `json:"loss_scales,omitempty"` // loss scales of fp16
	Clipped []int              `json:"clipped,omitempty"`     // gradients that clip_norm shortened
	// calls of an optimizer that counts them
	Directions []int `json:"directions,omitempty"`
	// the algorithm's numbers, and for each edge of an agent, by peer, its count
	Scalars    [][]float64 `json:"scalars,omitempty"`
	EdgeCounts [][]int     `json:"edge_counts,omitempty"`
}

// VirtualTime is the time of the agents, where they have one.
type VirtualTime struct {
	Links  string              `json:"links,omitempty"`  // identifies the simulated network
	Clocks []simnet.ClockState `json:"clocks,omitempty"` // clocks under that network
	Live   *snapshot.RealTime  `json:"live,omitempty"`   // state of an agent in real time
	// changes of the members so far, where the run decides of them
	Members []membership.Epoch `json:"members,omitempty"`
}

// Checksum verifies the file of vectors.
type Checksum struct {
	Bytes  int64  `json:"vectors_bytes"`
	SHA256 string `json:"vectors_sha256"`
	// SHA-256 of the manifest's text with noSum in place of this value
	OwnSHA256 string `json:"manifest_sha256,omitempty"`
}

// noSum stands for the checksum in the text that it is computed of.
var noSum = strings.Repeat("0", 2*sha256.Size)

// manifestText returns the text of m, a manifest or a struct that contains one, with its own
// checksum.
func manifestText(m any, sum *Checksum) ([]byte, error) {
	sum.OwnSHA256 = noSum
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(text)
	return bytes.Replace(text, []byte(noSum), []byte(hex.EncodeToString(h[:])), 1), nil
}

// readManifest reads the text of a manifest into a struct that is or contains m, and verifies its
// checksum.
func readManifest(text []byte, into any, m *Manifest) *CheckpointError {
	if err := json.Unmarshal(text, into); err != nil {
		return &CheckpointError{Got: "is damaged: its manifest is not JSON", Err: err}
	}
	sum := m.OwnSHA256
	if sum == "" && m.Format < 3 {
		return nil
	}
	h := sha256.Sum256(bytes.Replace(text, []byte(sum), []byte(noSum), 1))
	if hex.EncodeToString(h[:]) != sum {
		return &CheckpointError{Got: "is damaged: its manifest does not have its checksum"}
	}
	return nil
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

// lacksRows says that metrics.jsonl lacks rows before a checkpoint.
const lacksRows = "lacks rows"

// passes reports whether an older checkpoint may do: the files of this one have changed since they
// were written, or rows of metrics have, or its run had come to its decay.
func (e *CheckpointError) passes() bool {
	return strings.HasPrefix(e.Got, "is damaged") || e.Got == lacksRows || e.Got == otherSteps
}

func checkpointName(t int) string { return fmt.Sprintf("iter-%09d", t) }

// CheckpointData is the content of a checkpoint.
type CheckpointData struct {
	Snapshots   []*snapshot.Snapshot // snapshots of all agents at one iteration
	WallS       float64              // seconds of the run
	MeanBuffers []float32            // buffers that scored the mean model at the end of the run; else nil
}

// WriteCheckpoint saves the snapshots of all agents at one iteration. It writes to a temporary
// folder, flushes, and renames. If anything fails, the earlier checkpoints are left.
func (f *Folder) WriteCheckpoint(s *config.Setup, sv CheckpointData) (err error) {
	dir := filepath.Join(f.Path, "checkpoints")
	final := filepath.Join(dir, checkpointName(sv.Snapshots[0].T))
	if _, err := os.Stat(final); err == nil {
		// the run was resumed from this one, which was verified: rewriting would put it at risk
		return f.complete(final, sv)
	}
	if err := f.Disk.MkdirAll(dir); err != nil {
		return &CheckpointError{Path: final, Got: "cannot make its folder", Err: err}
	}
	err = publish(f.Disk, final, s.Config.Keep, s.DecayStart(),
		func(tmp string) error { return f.fillCheckpoint(tmp, s, sv) })
	if err != nil {
		return &CheckpointError{Path: final, Got: "cannot be written", Err: err,
			Hint: "earlier checkpoints are untouched: " + writeHint(err, "resume with --resume")}
	}
	return nil
}

// publish makes the checkpoint of folder final, which fill writes into a temporary folder, and then
// removes all but the newest checkpoints beside it, and one of an iteration that is pinned.
func publish(d Disk, final string, keep, pinned int, fill func(tmp string) error) (err error) {
	dir := filepath.Dir(final)
	tmp := filepath.Join(dir, ".writing")
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	if err := errors.Join(os.RemoveAll(tmp), d.MkdirAll(tmp)); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	if err := wholefile.Rename(tmp, final); err != nil {
		return err
	}
	return prune(dir, keep, pinned)
}

// fillCheckpoint writes the vectors, and then the manifest with their checksum.
func (f *Folder) fillCheckpoint(dir string, s *config.Setup, sv CheckpointData) (err error) {
	m := describe(s, sv)
	h := sha256.New()
	if m.Bytes, err = f.Disk.WriteFile(filepath.Join(dir, vectorsFile), func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, h), tensors(s.Algo, sv),
			map[string]string{"iteration": fmt.Sprint(m.Iteration)})
	}); err != nil {
		return err
	}
	for _, sn := range sv.Snapshots {
		if err := sn.DeviceErr(); err != nil {
			return err
		}
	}
	if s.Members.Elastic() {
		if err := writeText(f.Disk, filepath.Join(f.Path, MembersFile), membership.Text(m.Members)); err != nil {
			return err
		}
	}
	m.SHA256 = hex.EncodeToString(h.Sum(nil))
	text, err := manifestText(&m, &m.Checksum)
	if err != nil {
		return err
	}
	return writeText(f.Disk, filepath.Join(dir, manifestFile), text)
}

// describe makes the manifest without the checksum.
func describe(s *config.Setup, sv CheckpointData) Manifest {
	m := Manifest{
		Origin: Origin{Format: CheckpointVersion, RNG: rng.Version, Fingerprint: s.Config.Stored().Fingerprint(),
			Data: s.Set.Fingerprint(), Values: s.Config.Stored().Covered(), Files: s.Files},
		Content: Content{Iteration: sv.Snapshots[0].T, Agents: len(sv.Snapshots), Dim: s.Dim, Shape: s.Set.Shape,
			Classes: s.Set.Classes, Algo: s.Algo.Name(), Aux: algo.Names(s.Algo), WallS: sv.WallS, Batches: s.Batches,
			PixelMean: s.Set.Mean, PixelStd: s.Set.Std, ClassNames: s.Set.ClassNames},
	}
	m.Links, m.Buffers, m.Members = s.Links.Digest(), s.BufferLen(), s.Members.Until(m.Iteration)
	for _, a := range sv.Snapshots {
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
		m.Clipped, m.Directions = append(m.Clipped, a.Clipped), append(m.Directions, a.Directions)
		if len(a.Scalars) > 0 {
			m.Scalars = append(m.Scalars, a.Scalars)
		}
		if counts := edgeCounts(a); counts != nil {
			m.EdgeCounts = append(m.EdgeCounts, counts)
		}
	}
	return m
}

// edgeCounts lists the counts of the edges of an agent; nil: it keeps nothing for them.
func edgeCounts(sn *snapshot.Snapshot) (counts []int) {
	for _, e := range sn.Edges {
		counts = append(counts, e.Count)
	}
	return counts
}

// tensors lists every vector of every agent. Each is copied to the host only when it is written.
func tensors(a algo.Algorithm, sv CheckpointData) []safetensors.Tensor {
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
	for _, s := range sv.Snapshots {
		add(vectorName(s.Agent, "x"), s.Device, s.X)
		for i, name := range algo.Names(a) {
			add(vectorName(s.Agent, name), s.Device, s.Aux[i])
		}
		if s.Buffers != nil {
			add(vectorName(s.Agent, buffersName), s.Device, s.Buffers)
		}
		for _, e := range s.Edges {
			for k, v := range e.Vectors {
				add(vectorName(s.Agent, edgeVectorName(e.Peer, k)), s.Device, v)
			}
		}
		for _, peer := range slices.Sorted(maps.Keys(s.Duals)) {
			add(vectorName(s.Agent, edgeName(peer)), s.Device, s.Duals[peer])
		}
	}
	if sv.MeanBuffers != nil {
		ts = append(ts, safetensors.Tensor{Name: meanBuffersName, Shape: []int{len(sv.MeanBuffers)},
			Values: sv.MeanBuffers})
	}
	return ts
}

// edgeName returns the name of the dual of the edge to a peer.
func edgeName(peer int) string { return fmt.Sprintf("edge%d", peer) }

// edgeVectorName returns the name of vector k that an algorithm keeps for the edge to a peer.
func edgeVectorName(peer, k int) string { return fmt.Sprintf("edge%d.%d", peer, k) }

func vectorName(agent int, name string) string { return fmt.Sprintf("agent%d/%s", agent, name) }

// prune removes all but the newest keep checkpoints, and the one of a pinned iteration.
func prune(dir string, keep, pinned int) error {
	names, err := listCheckpoints(dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == checkpointName(pinned) })
	for _, n := range names[:max(0, len(names)-keep)] {
		if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
			return err
		}
	}
	return nil
}

// listCheckpoints lists the complete checkpoints of a folder, oldest first.
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

// LatestIteration returns the iteration of the newest checkpoint in a run folder, from which the
// run can be resumed; 0 if there is none.
func LatestIteration(run string) int {
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

// Checkpoint is an open checkpoint that was verified.
type Checkpoint struct {
	Manifest
	Path string
	file *safetensors.File
}

// OpenCheckpoint opens the newest checkpoint that is not damaged and before which metrics.jsonl has
// its rows, and verifies it against its checksum and the setup. It returns nil if there are no
// checkpoints. passed says why newer ones were passed over: see SetAside. It refuses a run of many
// processes that has not reached its end.
func (f *Folder) OpenCheckpoint(s *config.Setup) (c *Checkpoint, passed []error, err error) {
	if c = f.found; c != nil {
		f.found = nil
		return c, f.passed, nil
	}
	c, passed, err = newest(filepath.Join(f.Path, "checkpoints"), func(c *Checkpoint) *CheckpointError {
		if e := c.open(s); e != nil {
			return e
		}
		return f.hasRows(s, c)
	})
	switch {
	case err != nil || c != nil:
		return c, passed, err
	case len(passed) > 0:
		return nil, nil, passed[0]
	}
	return nil, nil, f.checkOneProcess()
}

// ResumesAt returns the iteration at which the run is resumed, and keeps its checkpoint open for
// OpenCheckpoint.
func (f *Folder) ResumesAt(s *config.Setup) (iteration int, err error) {
	if f.found, f.passed, err = f.OpenCheckpoint(s); err != nil || f.found == nil {
		return 0, err
	}
	return f.found.Iteration, nil
}

// newest opens the newest checkpoint of a folder that is not passed over, with the reasons for
// which newer ones were. It returns nil if all were, or there is none.
func newest(dir string, open func(c *Checkpoint) *CheckpointError) (c *Checkpoint, passed []error, err error) {
	names, err := listCheckpoints(dir)
	if err != nil {
		return nil, nil, unusable(dir, "its checkpoints cannot be listed", err)
	}
	for i, name := range slices.Backward(names) {
		c := &Checkpoint{Path: filepath.Join(dir, name)}
		bad := open(c)
		if bad == nil {
			return c, passed, nil
		}
		bad.Path = c.Path
		hint := "remove this folder to start the run over"
		switch {
		case i > 0 && bad.passes():
			hint = "" // an older one may do
		case i > 0:
			hint = "remove this folder to go on from " + names[i-1]
		case len(passed) > 0:
			hint = "no other checkpoint can be used: start over in another folder with --out"
		}
		bad.Hint = cmp.Or(bad.Hint, hint)
		switch {
		case bad.passes():
			passed = append(passed, bad)
		case len(passed) > 0: // they are checkpoints of another length of the run
			return nil, nil, passed[0]
		default:
			return nil, nil, bad
		}
	}
	return nil, passed, nil
}

// SetAside renames checkpoints that were passed over, so that they are neither read again nor in
// the way of new ones.
func SetAside(passed []error) error {
	for _, err := range passed {
		bad, ok := errors.AsType[*CheckpointError](err)
		if !ok {
			continue
		}
		prefix := "damaged-"
		if bad.Got == otherSteps {
			prefix = "decayed-"
		}
		aside := filepath.Join(filepath.Dir(bad.Path), prefix+filepath.Base(bad.Path))
		if err := errors.Join(os.RemoveAll(aside), os.Rename(bad.Path, aside)); err != nil {
			return &CheckpointError{Path: bad.Path, Got: "cannot be used, and cannot be renamed", Err: err}
		}
	}
	return nil
}

// open reads the checkpoint, verifies it, and checks that it fits the setup unless that is nil.
func (c *Checkpoint) open(s *config.Setup) *CheckpointError {
	text, err := bounded.File(filepath.Join(c.Path, manifestFile), manifestLimit(s))
	if err != nil {
		return &CheckpointError{Got: "is damaged: its manifest cannot be read", Err: err}
	}
	if e := readManifest(text, &c.Manifest, &c.Manifest); e != nil {
		return e
	}
	if s != nil {
		if e := c.fits(s); e != nil {
			return e
		}
	}
	vectors := filepath.Join(c.Path, vectorsFile)
	if e := c.verify(vectors); e != nil {
		return e
	}
	if c.file, err = safetensors.Open(vectors); err != nil {
		return &CheckpointError{Got: "is damaged", Err: err}
	}
	if e := c.checkVectors(); e != nil {
		c.file.Close()
		return e
	}
	return nil
}

// checkVectors refuses a file that lacks a vector.
func (c *Checkpoint) checkVectors() *CheckpointError {
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

// otherData returns the error of a checkpoint with another data fingerprint. Data sets of images
// may differ in the decoder only.
func otherData(there, here string) *CheckpointError {
	images, was, _ := strings.Cut(there, "-")
	if same, is, ok := strings.Cut(here, "-"); ok && same == images {
		hint := fmt.Sprintf("resume with --jpeg %s, or choose another output folder", was)
		if was == "turbo" {
			hint = "that decoder reduced large images and no longer exists: choose another output folder"
		}
		return &CheckpointError{Got: fmt.Sprintf(
			"was made with images decoded by %q, here they are by %q: the two differ in the last bits", was, is),
			Hint: hint}
	}
	return &CheckpointError{Got: "was made on other data than is loaded now (the contents differ)",
		Hint: "give it the same files, with --data-dir if they are elsewhere now, or choose another output folder"}
}

// fits compares the manifest with the setup.
func (c *Checkpoint) fits(s *config.Setup) *CheckpointError {
	switch {
	case c.Format < 1 || c.Format > CheckpointVersion || c.RNG != rng.Version:
		return &CheckpointError{Got: fmt.Sprintf("has format %d and random streams of version %d, this program %d "+
			"and %d", c.Format, c.RNG, CheckpointVersion, rng.Version),
			Hint: "resume it with the program that wrote it"}
	case c.belongs(s) != nil:
		return c.belongs(s)
	case c.Format == 1 && s.Config.ClipNorm > 0:
		return &CheckpointError{Got: "has format 1, of programs that clipped gradients with their L2 term",
			Hint: "resume it with the program that wrote it, or start over in another folder"}
	case c.Data != s.Set.Fingerprint():
		return otherData(c.Data, s.Set.Fingerprint())
	case c.Dim != s.Dim || c.Agents != len(s.Shards) || c.Algo != s.Algo.Name() ||
		!slices.Equal(c.Aux, algo.Names(s.Algo)) || !c.counts(s.Lattice != nil):
		return &CheckpointError{Got: "is damaged: its manifest contradicts its configuration"}
	case c.Buffers != s.BufferLen() || c.Losses != nil && len(c.Losses) != c.Agents:
		return &CheckpointError{Got: fmt.Sprintf("does not fit the network: it holds %d buffers of batch norm, "+
			"the network has %d", c.Buffers, s.BufferLen())}
	case c.otherFile(s) != "":
		return &CheckpointError{Got: "was made with other content of the file that " + c.otherFile(s) + " names",
			Hint: "resume with the same content, or start over in another folder"}
	case c.Links != s.Links.Digest():
		return &CheckpointError{
			Got: "was made with other simulated links, or without: its virtual time would not be that of one network",
			Hint: "resume with the file of links that the run used, a copy of which is links.yaml in its folder, or " +
				"without links if it has none, or start over in another folder",
		}
	case s.HasClocks() && len(c.Clocks) != c.Agents:
		return &CheckpointError{Got: "is damaged: it lacks the virtual times of its agents"}
	case c.Iteration < 0 || c.Iteration > s.Config.Iterations:
		return &CheckpointError{Got: fmt.Sprintf("is damaged: iteration %d of a run of %d", c.Iteration,
			s.Config.Iterations)}
	}
	return nil
}

// otherSteps refuses a checkpoint of a run whose step sizes had differed before.
const otherSteps = "had other step sizes"

// belongs refuses a checkpoint that is none of the run of s: neither its own, nor one of a run with
// which it begins, which may have had another length and another schedule.
func (c *Checkpoint) belongs(s *config.Setup) *CheckpointError {
	own, at := s.Config.Stored(), 0
	switch ok := false; {
	case c.Fingerprint == own.Fingerprint() || c.Fingerprint == own.FingerprintWithDevice():
		return nil
	case slices.Contains(s.FingerprintsAt(c.Iteration), c.Fingerprint):
		var err error
		if at, err = s.DiffersBefore(c.Iteration, c.Iteration); err != nil {
			return c.otherConfiguration(s)
		}
	default:
		if at, ok = s.Begins(c.Iteration, c.Fingerprint, c.Values); !ok {
			return c.otherConfiguration(s)
		}
	}
	if at == c.Iteration {
		return nil
	}
	return &CheckpointError{Got: otherSteps, Err: fmt.Errorf("it is of iteration %d of a run of %s iterations, whose "+
		"step size was not that of this run of %d since iteration %d", c.Iteration, c.Values["iterations"],
		s.Config.Iterations, at)}
}

// The words for a checkpoint of another configuration, and for the one that it is compared with.
const (
	otherConfig = "belongs to another configuration"
	configNow   = "config.yaml says now"
)

// otherConfiguration returns the error of a checkpoint with another fingerprint. The run folder has
// the configuration of the setup, so that its config.yaml was changed after the checkpoint was made.
func (c *Checkpoint) otherConfiguration(s *config.Setup) *CheckpointError {
	e := &CheckpointError{Got: otherConfig,
		Hint: "put the run's config.yaml back as it was, or choose another output folder"}
	here := s.Config.Stored().Covered()
	var diff []string
	for _, key := range config.Keys() {
		if was, is := c.Values[key], here[key]; was != is {
			diff = append(diff, fmt.Sprintf("%s (%s there, %s here)", key, cmp.Or(was, "unset"), cmp.Or(is, "unset")))
		}
	}
	if c.Values == nil || len(diff) == 0 { // Older programs wrote no values.
		return e
	}
	e.Got += " than " + configNow + ": " + strings.Join(diff, ", ")
	if c.Values["iterations"] != here["iterations"] || c.Values["epochs"] != here["epochs"] {
		e.Hint += "; --resume with more --iterations or --epochs lengthens a finished run"
	}
	return e
}

// otherFile returns a key whose file holds something else than in the checkpoint's run, or "".
// Checkpoints of older programs have no digests.
func (c *Checkpoint) otherFile(s *config.Setup) string {
	for _, key := range slices.Sorted(maps.Keys(c.Files)) {
		if c.Files[key] != s.Files[key] {
			return key
		}
	}
	return ""
}

// counts reports whether the manifest has the counters of every agent.
func (c *Checkpoint) counts(decodes bool) bool {
	return len(c.Ledgers) == c.Agents && len(c.Grads) == c.Agents && (!decodes || len(c.Decodes) == c.Agents) &&
		(c.Format == 1 || len(c.Clipped) == c.Agents && len(c.Directions) == c.Agents)
}

func (c *Checkpoint) verify(path string) *CheckpointError {
	f, err := bounded.Open(path)
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
		return &CheckpointError{Got: fmt.Sprintf("is damaged: %s has %d bytes and checksum %.8s…, its manifest "+
			"says %d and %.8s…", vectorsFile, n, sum, c.Bytes, c.SHA256)}
	}
	return nil
}

// Restore fills a snapshot with the vectors, the counters and the clock of its agent.
func (c *Checkpoint) Restore(sn *snapshot.Snapshot) error {
	i := sn.Agent
	names := append([]string{"x"}, c.Aux...)
	if sn.Buffers != nil {
		names = append(names, buffersName)
	}
	for k, v := range sn.Vectors() {
		if err := c.load(vectorName(i, names[k]), sn.Device, v); err != nil {
			return err
		}
	}
	sn.Counters = c.Counters(i)
	if err := c.restoreEdges(sn); err != nil {
		return err
	}
	if len(c.Clocks) == c.Agents {
		sn.Clock = c.Clocks[i]
	}
	return nil
}

// Counters returns the counters of an agent. The checkpoint of agent 0 alone holds the counters of
// the others at the last row before it.
func (c *Checkpoint) Counters(agent int) (n snapshot.Counters) {
	n.Ledger, n.Grads = c.Ledgers[agent], c.Grads[agent]
	if c.Losses != nil { // checkpoints of old versions have none: the next row then covers fewer batches
		n.Losses = c.Losses[agent]
	}
	if c.Decodes != nil {
		n.Decodes = c.Decodes[agent]
	}
	if len(c.Clipped) == c.Agents { // format 1 has no optimizer that counts
		n.Clipped, n.Directions = c.Clipped[agent], c.Directions[agent]
	}
	if len(c.Scales) == c.Agents {
		n.Scale = c.Scales[agent]
	}
	if len(c.Scalars) == c.Agents {
		n.Scalars = c.Scalars[agent]
	}
	return n
}

// restoreEdges fills the memory of edges.
func (c *Checkpoint) restoreEdges(sn *snapshot.Snapshot) error {
	if len(sn.Edges) > 0 && (len(c.EdgeCounts) != c.Agents || len(c.EdgeCounts[sn.Agent]) != len(sn.Edges)) {
		return c.Damaged(fmt.Sprintf("it lacks what agent %d keeps for its %d edges", sn.Agent, len(sn.Edges)))
	}
	for i, e := range sn.Edges {
		e.Count = c.EdgeCounts[sn.Agent][i]
		for k, v := range e.Vectors {
			if err := c.load(vectorName(sn.Agent, edgeVectorName(e.Peer, k)), sn.Device, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checkpoint) load(name string, dev device.Device, v device.Vector) error {
	host := make([]float32, v.Len())
	if err := safetensors.LoadInto(c.file, name, host); err != nil {
		return &CheckpointError{Path: c.Path, Got: "cannot be read", Err: err}
	}
	dev.Write(v, host)
	return nil
}

// LoadDual reads the dual of an agent's edge to a peer, in a run in real time.
func (c *Checkpoint) LoadDual(agent, peer int, dev device.Device, v device.Vector) error {
	return c.load(vectorName(agent, edgeName(peer)), dev, v)
}

// Damaged returns the error of a checkpoint whose content is inconsistent.
func (c *Checkpoint) Damaged(what string) error {
	return &CheckpointError{Path: c.Path, Got: "is damaged: " + what}
}

func (c *Checkpoint) Close() error { return c.file.Close() }
