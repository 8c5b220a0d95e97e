package cudnn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"fspda/cuda/driver"
	"fspda/internal/wholefile"
)

// ChoiceCache stores the measured choices as files in a folder, so that each convolution is
// measured once per machine. GPUs of the same name and several programs may share the folder at the
// same time: the first measures a convolution, and the others wait and take its choice, so that
// equal GPUs compute equally. An unreadable file is measured again; a failure to store is ignored,
// because the program can continue without the cache. A ChoiceCache belongs to one thread.
type ChoiceCache struct {
	Dir     string  // "" keeps choices in memory only
	GPU     string  // name of the GPU
	Version uintptr // version of the library: others have different algorithms

	known map[string]Choice // choices made by this program
	timed bool              // see Timed
}

// Timed reports whether candidates were timed with this cache. The driver keeps their kernels
// loaded until the context ends.
func (c *ChoiceCache) Timed() bool { return c != nil && c.timed }

// noteTiming has Timed return true.
func (c *ChoiceCache) noteTiming() {
	if c != nil {
		c.timed = true
	}
}

// DefaultDir returns the user's folder for choices.
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cudnn: finding the choice cache folder: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(dir, "fspda", "convolutions"), nil
}

// choiceFile is the content of a file: the choice, the convolution, GPU and library for which it
// was made, and a checksum, so that damage and copied files are detected.
type choiceFile struct {
	For    string `json:"for"`
	Choice Choice `json:"choice"`
	Sum    string `json:"sum"`
}

// name returns everything that a choice depends on.
func (c *ChoiceCache) name(key string) string {
	return fmt.Sprintf("%s on %s, cuDNN %d", key, c.GPU, c.Version)
}

func (c *ChoiceCache) path(key string) string { return pathOf(c.Dir, c.name(key)) }

func pathOf(dir, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
}

// digest returns the checksum of a file's other fields.
func (f choiceFile) digest() string {
	// only a time of NaN or infinity cannot be marshalled, and then nothing is stored
	text, _ := json.Marshal(f.Choice)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s;%s", f.For, text))
	return hex.EncodeToString(sum[:8])
}

// valid reports whether a stored choice is possible.
func (c Choice) valid() bool { return c.Memory >= 0 && (c.Engine == nil || c.Engine.valid()) }

func (c *ChoiceCache) get(key string) (Choice, bool) {
	if c == nil {
		return Choice{}, false
	}
	if known, ok := c.known[key]; ok || c.Dir == "" {
		return known, ok
	}
	text, err := os.ReadFile(c.path(key))
	if err != nil {
		return Choice{}, false
	}
	var f choiceFile
	if json.Unmarshal(text, &f) != nil || f.For != c.name(key) || f.Sum != f.digest() || !f.Choice.valid() {
		return Choice{}, false
	}
	return f.Choice, true
}

// lockLimit is how long to wait for another GPU that measures: more than it takes.
const lockLimit = 30 * time.Second

// lock waits until no other GPU measures the same convolution, and keeps others from it until
// unlock. Where that fails or takes too long, both measure.
func (c *ChoiceCache) lock(key string) (unlock func()) {
	if c == nil || c.Dir == "" || os.MkdirAll(c.Dir, 0o755) != nil {
		return func() {}
	}
	l := flock.New(strings.TrimSuffix(c.path(key), ".json") + ".lock")
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	_, _ = l.TryLockContext(ctx, 10*time.Millisecond)
	return func() { _ = l.Close() } // which unlocks
}

func (c *ChoiceCache) put(key string, to Choice) {
	if c == nil {
		return
	}
	if c.known == nil {
		c.known = map[string]Choice{}
	}
	c.known[key] = to
	if c.Dir == "" {
		return
	}
	f := choiceFile{For: c.name(key), Choice: to}
	f.Sum = f.digest()
	text, err := json.Marshal(f)
	if err == nil {
		_ = wholefile.Write(c.path(key), append(text, '\n'))
	}
}

// drop removes a choice.
func (c *ChoiceCache) drop(key string) {
	if c == nil {
		return
	}
	if delete(c.known, key); c.Dir != "" {
		_ = os.Remove(c.path(key)) // else it stays as if the run had not returned
	}
}

// noReturn is the Why of a choice whose first run has begun.
const noReturn = "its first run did not return, or lost the GPU"

// ErrNoReturn is returned by [ChoiceCache.Attempt] in place of running a candidate again.
var ErrNoReturn = errors.New("cudnn: " + noReturn)

// Attempt runs work of a key for the first time. If it loses the GPU, or the process ends before it
// returns, this program and later ones get ErrNoReturn in its place, because it would end them too.
// A nil cache stores nothing.
func (c *ChoiceCache) Attempt(key string, run func() error) error {
	if c.lost(key) {
		return ErrNoReturn
	}
	c.put(key, Choice{Why: noReturn})
	err := run()
	if !driver.Lost(err) {
		c.drop(key)
	}
	return err
}

// lost reports whether the first run of a key did not return.
func (c *ChoiceCache) lost(key string) bool {
	known, _ := c.get(key)
	return known.Why == noReturn
}

// ReadChoices returns the choices that a folder stores, a line of JSON each. They are of use on any
// machine with the same kind of GPU and version of the library.
func ReadChoices(dir string) (lines []byte, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && bytes.Count(text, []byte("\n")) == 1 {
			lines = append(lines, text...)
		}
	}
	return lines, nil
}

// AddChoices stores lines of [ReadChoices] in a folder, without changing its own choices. Damaged
// lines are left out, since they would be measured again anyway.
func AddChoices(dir string, lines []byte) error {
	for line := range bytes.Lines(lines) {
		var f choiceFile
		if json.Unmarshal(line, &f) != nil || f.Sum != f.digest() || !f.Choice.valid() {
			continue
		}
		path := pathOf(dir, f.For)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := wholefile.Write(path, append(bytes.TrimSpace(line), '\n')); err != nil {
			return fmt.Errorf("cudnn: storing choices of convolutions: %w", err)
		}
	}
	return nil
}
