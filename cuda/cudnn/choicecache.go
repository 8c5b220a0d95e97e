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

// ChoiceCache stores the measured choices as files in a folder, so that each convolution is
// measured once per machine. Several programs may share the folder at the same time. An unreadable
// file is measured again; a failure to store is ignored, because the program can continue without
// the cache. A ChoiceCache belongs to one thread.
type ChoiceCache struct {
	Dir     string  // "" keeps choices in memory only
	GPU     string  // name of the GPU
	Version uintptr // version of the library: others have different algorithms

	known map[string]Choice // choices made by this program
}

// DefaultDir returns the user's folder for choices.
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cudnn: finding the choice cache folder: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(dir, "fspda", "convolutions"), nil
}

// choiceFile is the content of a file: the choice and what it was made for, so that damage and
// copied files are detected.
type choiceFile struct {
	For    string `json:"for"`
	Choice Choice `json:"choice"`
	Sum    string `json:"sum"`
}

// name returns everything that a choice depends on.
func (c *ChoiceCache) name(key string) string {
	return fmt.Sprintf("%s on %s, cuDNN %d", key, c.GPU, c.Version)
}

func (c *ChoiceCache) path(key string) string {
	sum := sha256.Sum256([]byte(c.name(key)))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".json")
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
