package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/internal/rng"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

var wall = regexp.MustCompile(`"(wall_s|checksum)":[^,}]*`)

// metrics is metrics.jsonl without its timing column.
func metrics(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return wall.ReplaceAllString(string(text), "")
}

// A run that is stopped at random points, again and again, and resumed gives the bits of one that
// was not.
func TestResume(t *testing.T) {
	for _, edit := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Momentum, c.Schedule, c.Warmup = 0.5, "cosine", 1 },
		func(c *Config) { c.Algo, c.Momentum = "dsgd", 0.9 },
		func(c *Config) { c.Algo = "sgd" },
		func(c *Config) { c.Dropout = 0.4 },
		func(c *Config) { c.Average = "ema(0.9)" },
		func(c *Config) { c.Algo, c.LocalSteps, c.Optimizer, c.Average = "diloco", 5, "adamw", "tail(20)" },
	} {
		c := small()
		edit(&c)
		c.EvalPoints = 12
		whole, part := runFolder(t), runFolder(t)
		want, err := inFolder(t, context.Background(), c, whole, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := rng.New(1, "stops")
		var got *Result
		stops := 0
		for {
			ctx, stop := context.WithCancel(context.Background())
			at := -1
			if stops < 5 {
				at = s.IntN(c.Iterations)
			}
			got, err = inFolder(t, ctx, c, part, stopping(at, stop))
			stop()
			if err != nil {
				t.Fatal(err)
			}
			if got.Status == Finished {
				break
			}
			if got.Status != Stopped || got.Models != nil {
				t.Fatalf("status %s", got.Status)
			}
			stops++
		}
		if stops == 0 {
			t.Fatal("the run was never stopped")
		}
		if trace(t, got) != trace(t, want) {
			t.Errorf("%s: stopped %d times, and the result differs", c.Algo, stops)
		}
		if metrics(t, part) != metrics(t, whole) {
			t.Errorf("%s: metrics.jsonl differs", c.Algo)
		}
		if lines := strings.Count(metrics(t, part), "\n"); lines != 13 {
			t.Errorf("%d rows", lines)
		}
	}
}

// A kill leaves rows that are newer than the checkpoint, perhaps half a line: they are made again.
func TestResumeAfterKill(t *testing.T) {
	c := long()
	c.EvalPoints = 12
	whole, part := runFolder(t), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	stopAt(t, c, part, 20)
	f, err := os.OpenFile(filepath.Join(part, "metrics.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"iteration":275,"epoch":1}` + "\n" + `{"iteration":300,"epo`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	// a kill while checkpointing
	if err := os.MkdirAll(filepath.Join(part, "checkpoints", ".writing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := inFolder(t, context.Background(), c, part, Options{}); err != nil {
		t.Fatal(err)
	}
	if metrics(t, part) != metrics(t, whole) {
		t.Error("metrics.jsonl differs")
	}
}

// long is small, but so long that no agent can have run ahead to the end when agent 0 is stopped
// early.
func long() Config {
	c := small()
	c.Iterations = 300
	return c
}

// stopAt runs c in dir until agent 0 reaches an iteration, and leaves a checkpoint.
func stopAt(t *testing.T, c Config, dir string, at int) *Result {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := inFolder(t, ctx, c, dir, stopping(at, stop))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != Stopped {
		t.Fatalf("status %s", r.Status)
	}
	return r
}

// stopping are the options of a run that is stopped when agent 0 is at an iteration. The agent is
// held up until the run says that it heard of it: so small a run would be over by then.
func stopping(at int, stop func()) Options {
	heard := make(chan struct{})
	return Options{Log: hearing(func() { close(heard) }), OnStep: func(it int) {
		if it == at {
			stop()
			<-heard
		}
	}}
}

// hearing is a log that calls stopping when the run says that it heard that it is to stop.
func hearing(stopping func()) *zap.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard),
		zap.InfoLevel)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if strings.HasPrefix(e.Message, "stopping") {
			stopping()
		}
		return nil
	}))
}

func newestCheckpoint(t *testing.T, dir string) string {
	t.Helper()
	names, err := checkpointsOf(dir)
	if err != nil || len(names) == 0 {
		t.Fatalf("checkpoints %v, %v", names, err)
	}
	return filepath.Join(dir, "checkpoints", names[len(names)-1])
}

// Every kind of damage to a checkpoint is named, and nothing is changed.
func TestDamagedCheckpoint(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, ck string) {
			path := filepath.Join(ck, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(old, with string) func(*testing.T, string) {
		return edit("manifest.json", func(b []byte) []byte {
			return []byte(strings.Replace(ofVersion(string(b), 2), old, with, 1))
		})
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, string)
		want   string
	}{
		{"bit flipped", edit("agents.safetensors", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "checksum"},
		{"vectors cut off", edit("agents.safetensors", func(b []byte) []byte { return b[:len(b)-100] }), "bytes"},
		{"vectors gone", func(t *testing.T, ck string) { os.Remove(filepath.Join(ck, "agents.safetensors")) },
			"vectors cannot be read"},
		{"manifest cut off", edit("manifest.json", func(b []byte) []byte { return b[:len(b)/2] }), "not JSON"},
		{"manifest gone", func(t *testing.T, ck string) { os.Remove(filepath.Join(ck, "manifest.json")) },
			"manifest cannot be read"},
		{"manifest with another digit", edit("manifest.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"wall_s": `), []byte(`"wall_s": 1`), 1)
		}), "manifest does not have its checksum"},
		{"manifest without its checksum", edit("manifest.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte("manifest_sha256"), []byte("manifest_sha25v"), 1)
		}), "manifest does not have its checksum"},
		{"other version", replace(`"rng_version": 1`, `"rng_version": 7`), "version"},
		{"other config", replace(`"config_fingerprint": "`, `"config_fingerprint": "00`), "another configuration"},
		{"other data", replace(`"data_fingerprint": "`, `"data_fingerprint": "00`), "other data"},
		{"agents lost", replace(`"agents": 5`, `"agents": 6`), "contradicts"},
		{"beyond the end", replace(`"iteration": `, `"iteration": 99999`), "iteration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, dir := long(), runFolder(t)
			stopAt(t, cfg, dir, 20)
			before := metrics(t, dir)
			c.damage(t, newestCheckpoint(t, dir))
			_, err := inFolder(t, context.Background(), cfg, dir, Options{})
			var ce *CheckpointError
			if !errors.As(err, &ce) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(),
				"iter-") {
				t.Fatalf("error %v, want one about %q", err, c.want)
			}
			if metrics(t, dir) != before {
				t.Error("the metrics were touched")
			}
		})
	}
}

// A key that was edited in config.yaml after a stop is named, with both values.
func TestEditedConfiguration(t *testing.T) {
	cfg, dir := long(), runFolder(t)
	stopAt(t, cfg, dir, 20)
	path := filepath.Join(dir, "config.yaml")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range map[string][2]string{"alpha": {"0.3", "0.0125"}, "seed": {"1", "18446744073709551615"},
		"density": {"0.1", "0.5"}, "batch": {"16", "8"}, "graph": {"ring", "complete"},
		"weight_decay": {"", "0.001"}, "data_train": {"400", "200"}} {
		line := regexp.MustCompile("(?m)^" + key + ": .*")
		if !line.Match(before) {
			t.Fatalf("no key %s", key)
		}
		edited := Default()
		text := line.ReplaceAll(before, []byte(key+": "+values[1]))
		if err := errors.Join(os.WriteFile(path, text, 0o644), edited.Parse(path, text)); err != nil {
			t.Fatal(err)
		}
		_, err := inFolder(t, t.Context(), edited, dir, Options{})
		if want := regexp.MustCompile(`\b` + key + ` \(` + values[0] + `.* there, ` + values[1] + ` here\)`); err == nil ||
			!want.MatchString(err.Error()) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A stopped run whose iterations were edited goes on as a run of that length, unless rows lie where
// that run has none.
func TestEditedLength(t *testing.T) {
	for at, refused := range map[int]bool{20: false, 160: true} {
		cfg, dir := long(), runFolder(t)
		stopAt(t, cfg, dir, at)
		path := filepath.Join(dir, "config.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile("(?m)^iterations: .*").ReplaceAll(text, []byte("iterations: 600"))
		if err := errors.Join(os.WriteFile(path, text, 0o644), cfg.Parse(path, text)); err != nil {
			t.Fatal(err)
		}
		got, err := inFolder(t, t.Context(), cfg, dir, Options{})
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), "metrics.jsonl does not hold the")):
			t.Errorf("stopped at %d: error %v, want one about rows", at, err)
		case !refused && err != nil:
			t.Errorf("stopped at %d: %v", at, err)
		case !refused && trace(t, got) != trace(t, play(t, cfg, Options{})):
			t.Errorf("stopped at %d, it continued not as a run of that length", at)
		}
	}
}

// ofVersion returns the text of a manifest as a program of an older version writes it, without a
// checksum of its own.
func ofVersion(text string, v int) string {
	text = regexp.MustCompile(`,\s*"manifest_sha256": "[0-9a-f]*"`).ReplaceAllString(text, "")
	return strings.Replace(text, `"format": 3`, fmt.Sprintf(`"format": %d`, v), 1)
}

// A checkpoint of version 1, which has no counts, is resumed with the same bits, with a heavy ball
// too. It is refused where its program clipped gradients otherwise.
func TestCheckpointOfVersion1(t *testing.T) {
	c := long()
	c.Momentum = 0.5
	counts := regexp.MustCompile(`(?s)"(clipped|directions)": \[[^]]*\],?\s*`)
	resumed := func(c Config) (*Result, error) {
		dir := runFolder(t)
		stopAt(t, c, dir, 20)
		path := filepath.Join(newestCheckpoint(t, dir), "manifest.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		old := ofVersion(counts.ReplaceAllString(string(text), ""), 1)
		old = regexp.MustCompile(`,\s*}`).ReplaceAllString(old, "}")
		if err := os.WriteFile(path, []byte(old), 0o644); err != nil || old == string(text) {
			t.Fatalf("manifest %s, error %v", text, err)
		}
		return inFolder(t, context.Background(), c, dir, Options{})
	}
	r, err := resumed(c)
	if err != nil {
		t.Fatal(err)
	}
	if trace(t, r) != trace(t, play(t, c, Options{})) {
		t.Error("it went on to other results")
	}
	c.ClipNorm = 1
	if _, err := resumed(c); err == nil || !strings.Contains(err.Error(), "format 1") {
		t.Errorf("error %v, want one about the format", err)
	}
}

// fullDisk is a disk on which files of more than limit bytes find no room.
type fullDisk struct {
	runfolder.Disk
	limit int64
}

func (d fullDisk) WriteFile(path string, write func(io.Writer) error) (int64, error) {
	return d.Disk.WriteFile(path, func(w io.Writer) error { return write(&stingy{w, d.limit}) })
}

type stingy struct {
	w    io.Writer
	left int64
}

func (s *stingy) Write(p []byte) (int, error) {
	if int64(len(p)) > s.left {
		n, _ := s.w.Write(p[:s.left])
		s.left = 0
		return n, syscall.ENOSPC
	}
	s.left -= int64(len(p))
	return s.w.Write(p)
}

// A disk that is full while checkpointing ends the run with a clear error; the previous checkpoint
// survives and the run goes on from it.
func TestFullDisk(t *testing.T) {
	c, dir, whole := long(), runFolder(t), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	stopAt(t, c, dir, 20)
	before := newestCheckpoint(t, dir)
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	f.Disk = fullDisk{runfolder.OSDisk{}, 10000} // the metrics fit, the vectors do not
	_, err = Run(context.Background(), s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true})
	var ce *CheckpointError
	if !errors.As(err, &ce) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--resume") {
		t.Fatalf("error %v", err)
	}
	if got := newestCheckpoint(t, dir); got != before {
		t.Errorf("the newest checkpoint is %s, was %s", got, before)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*", ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoints", ".writing")); err == nil {
		t.Error("a partly written checkpoint remains")
	}
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if metrics(t, dir) != metrics(t, whole) {
		t.Error("the resumed run differs")
	}
}

// A run that is stopped where it was resumed keeps the checkpoint it came from, untouched: writing
// it anew could be cut short.
func TestCheckpointIsWrittenOnce(t *testing.T) {
	c, dir := long(), runFolder(t)
	stopAt(t, c, dir, 20)
	ck := newestCheckpoint(t, dir)
	mark := filepath.Join(ck, "mark")
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true})
	res, err := r.start()
	if err != nil {
		t.Fatal(err)
	}
	set := make([]*snapshot.Snapshot, c.Agents)
	for i, a := range r.agents {
		a.gradients.loader.Close()
		set[i] = a.newSnapshot()
		set[i].Agent, set[i].T = i, res.First
	}
	if err := errors.Join(f.WriteCheckpoint(s, runfolder.CheckpointData{Snapshots: set}), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err != nil || newestCheckpoint(t, dir) != ck {
		t.Errorf("the checkpoint was written again: %v", err)
	}
}

// A run that was killed before its first checkpoint begins anew, and TensorBoard is told to forget
// what the first try left there.
func TestEventsOfASecondStart(t *testing.T) {
	c, once, twice := long(), runFolder(t), runFolder(t)
	size := func(dir, number string) int64 {
		info, err := os.Stat(filepath.Join(dir, "tensorboard", "events.out.tfevents."+number+".fspda"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if _, err := inFolder(t, context.Background(), c, once, Options{}); err != nil {
		t.Fatal(err)
	}
	stopAt(t, c, twice, 20)
	if err := os.RemoveAll(filepath.Join(twice, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	if _, err := inFolder(t, context.Background(), c, twice, Options{}); err != nil {
		t.Fatal(err)
	}
	if a, b := size(once, "000000"), size(twice, "000001"); b <= a {
		t.Errorf("%d bytes of events, as many as without a restart", b)
	}
}

// A kill while the folder is made leaves it without a configuration: it can be used as if it were
// empty.
func TestFolderOfAKilledStart(t *testing.T) {
	c, dir := small(), runFolder(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".lock", "shards.json", ".shards.json.writing", "tokenizer.json",
		".tokenizer.json.writing", "links.yaml", ".config.yaml.writing"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "shards.json")); err != nil || len(text) < 10 {
		t.Errorf("shards.json is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil {
		t.Error("a run without text has the tokens of another")
	}
}

// Metrics that are damaged, or lack rows that the checkpoint's past had, are refused as input, and
// left as they are. So is a folder in which they cannot be opened.
func TestDamagedMetrics(t *testing.T) {
	line := func(edit func(lines []string) []string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, "metrics.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := edit(strings.SplitAfter(string(text), "\n"))
			if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, string)
		want   string
	}{
		"garbage": {line(func(l []string) []string { l[1] = "#\n"; return l }), "line 2"},
		"long line": {line(func(l []string) []string { return append([]string{strings.Repeat("9", 2<<20)}, l...) }),
			"too long"},
		"row gone":  {line(func(l []string) []string { return append(l[:1], l[2:]...) }), "in order"},
		"row twice": {line(func(l []string) []string { return append([]string{l[0]}, l...) }), "in order"},
		"all gone":  {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "metrics.jsonl")) }, "in order"},
		"events": {func(t *testing.T, dir string) {
			events := filepath.Join(dir, "tensorboard")
			if err := errors.Join(os.RemoveAll(events), os.WriteFile(events, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}, "tensorboard"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, dir := long(), runFolder(t)
			cfg.EvalPoints = 30
			stopAt(t, cfg, dir, 20)
			c.damage(t, dir)
			before, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
			_, err := inFolder(t, context.Background(), cfg, dir, Options{})
			if _, ok := errors.AsType[*FolderError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one about %q", err, c.want)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl")); name != "events" &&
				string(after) != string(before) {
				t.Error("the metrics were touched")
			}
		})
	}
}

// A run of which a file was cut off or changed ends with the rows and the models that it would have
// had, or is refused as input. It goes on where the damage leaves an older checkpoint with its
// rows. FSPDA_LONG=1 does all kinds of damage to each file, else a third of them.
func TestDamagedFiles(t *testing.T) {
	cfg, whole := long(), runFolder(t)
	cfg.EvalPoints = 15
	uninterrupted := play(t, cfg, Options{})
	want := trace(t, uninterrupted)
	for _, at := range []int{40, 120} { // two checkpoints
		stopAt(t, cfg, whole, at)
	}
	names, err := checkpointsOf(whole)
	if err != nil || len(names) != 2 {
		t.Fatalf("checkpoints %q, %v", names, err)
	}
	var files []string
	if err := fs.WalkDir(os.DirFS(whole), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != ".lock" {
			files = append(files, p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	newest := "checkpoints/" + filepath.Base(names[1])
	draw := rand.New(rand.NewPCG(1, 2))
	damages := map[string]func(text []byte) []byte{
		"cut off":    func(b []byte) []byte { return b[:draw.IntN(len(b)+1)] },
		"a bit":      func(b []byte) []byte { b[draw.IntN(len(b))] ^= 1 << draw.IntN(8); return b },
		"the last 9": func(b []byte) []byte { return b[:max(0, len(b)-9)] },
		"a zeroed part": func(b []byte) []byte {
			at := draw.IntN(len(b))
			clear(b[at:min(len(b), at+512)])
			return b
		},
		"empty": func([]byte) []byte { return nil },
		"gone":  nil,
	}
	resumed := map[string]int{}
	for i, file := range files {
		for k, kind := range slices.Sorted(maps.Keys(damages)) {
			if os.Getenv("FSPDA_LONG") == "" && (i+k)%3 > 0 {
				continue
			}
			dir := runFolder(t)
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(file))
			text, err := os.ReadFile(path)
			if err == nil && damages[kind] == nil {
				err = os.Remove(path)
			} else if err == nil && len(text) > 0 {
				err = os.WriteFile(path, damages[kind](text), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			res, err := inFolder(t, t.Context(), cfg, dir, Options{})
			coded, ok := errors.AsType[interface {
				error
				ExitCode() int
			}](err)
			switch {
			case err != nil && (!ok || coded.ExitCode() != 2):
				t.Errorf("%s, %s: %v", file, kind, err)
			case err != nil && (strings.HasPrefix(file, newest) || file == "metrics.jsonl" && kind == "the last 9"):
				t.Errorf("%s, %s, with an older checkpoint: %v", file, kind, err)
			case err == nil && (file != "metrics.jsonl" || kind != "a bit") && trace(t, res) != want,
				err == nil && !slices.Equal(res.Mean, uninterrupted.Mean): // a digit of a row has no checksum
				t.Errorf("%s, %s: other results", file, kind)
			case err == nil:
				resumed[file]++
				continue
			}
			t.Logf("%s, %s: %v", file, kind, err)
		}
	}
	t.Log(resumed)
}

// Old checkpoints go, the newest stay: as many as were asked for.
func TestPrune(t *testing.T) {
	for _, keep := range []int{1, 3} {
		c, dir := long(), runFolder(t)
		c.Keep = keep
		last := 0
		// far apart: others may have been ahead of agent 0 when it was stopped
		for _, at := range []int{10, 70, 130, 190} {
			last = stopAt(t, c, dir, at).Iteration
		}
		names, err := checkpointsOf(dir)
		if err != nil || len(names) != keep || names[keep-1] != fmt.Sprintf("iter-%09d", last) {
			t.Errorf("%v, %v", names, err)
		}
	}
}

func TestFolderRefusals(t *testing.T) {
	c, dir := small(), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	s, _ := resolve(t, c)
	other := c
	other.Alpha, other.Seed = 0.2, 5
	so, _ := resolve(t, other)
	busy := t.TempDir()
	if err := os.WriteFile(filepath.Join(busy, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		setup  *Setup
		resume bool
		want   string
	}{
		{dir, s, false, "already holds this run"},
		{dir, so, true, "alpha (0.3 there, 0.2 here), seed (1 there, 5 here)"},
		{dir, so, false, "another configuration"},
		{busy, s, false, "not empty"},
		{filepath.Join(busy, "new"), s, true, "no run to resume"},
		{filepath.Join(busy, "thesis.txt"), s, false, "cannot"},
	} {
		_, err := OpenFolder(c.path, c.setup, c.resume)
		if _, ok := errors.AsType[*FolderError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", c.path, err, c.want)
		}
	}
	if entries, _ := os.ReadDir(busy); len(entries) != 1 {
		t.Errorf("files remain after a refusal: %v", entries)
	}
	held, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir, s, true); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("two at once in one folder: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	harmless := c
	harmless.Threads, harmless.Checkpoint, harmless.Accounting = 1, 5, "packed"
	sh, _ := resolve(t, harmless)
	if _, err := OpenFolder(dir, sh, true); err != nil {
		t.Errorf("a harmless difference was refused: %v", err)
	}
}

// A finished run whose checkpoints are gone keeps its rows: it is not trained again.
func TestResumeWithoutCheckpoints(t *testing.T) {
	c, dir := small(), runFolder(t)
	if _, err := inFolder(t, t.Context(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	want := metrics(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	_, err := inFolder(t, t.Context(), c, dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "checkpoints back") {
		t.Errorf("resumed: %v", err)
	}
	if got := metrics(t, dir); got != want {
		t.Error("the rows are lost")
	}
}

// A damaged shards.json, which the report at the end reads, is written again when a run is resumed.
func TestResumeMendsShards(t *testing.T) {
	c, dir := small(), runFolder(t)
	stopAt(t, c, dir, 20)
	path := filepath.Join(dir, "shards.json")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []func() error{func() error { return os.WriteFile(path, want[:len(want)/2], 0o644) },
		func() error { return os.Remove(path) }} {
		if err := bad(); err != nil {
			t.Fatal(err)
		}
		s, _ := resolve(t, c)
		f, err := OpenFolder(dir, s, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("shards.json is %.30q, %v", got, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
