package cudnn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"fspda/internal/wholefile"
)

// Choices keeps the algorithms of convolutions as files in a folder, so that they are timed once on
// a machine. Several programs may use one folder at a time. What cannot be read is found anew; what
// cannot be kept is no error, for the program can go on without. A Choices belongs to one thread.
type Choices struct {
	Dir     string  // "" keeps nothing beyond this program
	GPU     string  // its name
	Version uintptr // of the library: another one has other algorithms

	known map[string]Choice // those of this program
}

// DefaultDir is where choices are kept for a user.
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cudnn: finding a folder for the algorithms of convolutions: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(dir, "fspda", "convolutions"), nil
}

// chosen is a file: the choice, and what it was made for, so that neither damage nor a folder that
// was copied goes unseen.
type chosen struct {
	For    string `json:"for"`
	Choice Choice `json:"choice"`
	Sum    string `json:"sum"`
}

// name is what a choice depends on.
func (c *Choices) name(key string) string {
	return fmt.Sprintf("%s on %s, cuDNN %d", key, c.GPU, c.Version)
}

func (c *Choices) path(key string) string {
	sum := sha256.Sum256([]byte(c.name(key)))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".json")
}

// digest covers all of a file but itself.
func (f chosen) digest() string {
	// of numbers alone: it cannot fail but for a time that is none, and then nothing is kept
	text, _ := json.Marshal(f.Choice)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s;%s", f.For, text))
	return hex.EncodeToString(sum[:8])
}

// sound tells whether a choice that was kept can be one.
func (c Choice) sound() bool { return c.Memory >= 0 && (c.Engine == nil || c.Engine.sound()) }

func (c *Choices) get(key string) (Choice, bool) {
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
	var f chosen
	if json.Unmarshal(text, &f) != nil || f.For != c.name(key) || f.Sum != f.digest() || !f.Choice.sound() {
		return Choice{}, false
	}
	return f.Choice, true
}

func (c *Choices) keep(key string, to Choice) {
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
	f := chosen{For: c.name(key), Choice: to}
	f.Sum = f.digest()
	text, err := json.Marshal(f)
	if err == nil {
		_ = wholefile.Write(c.path(key), append(text, '\n'))
	}
}
