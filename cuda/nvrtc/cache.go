package nvrtc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"fspda/internal/wholefile"
)

// Compiler compiles sources that a Cache does not hold. *Library implements it.
type Compiler interface {
	Compile(Source) (Binary, error)
}

// Cache stores cubins as files in a folder. Several programs may share the folder at the same time.
type Cache struct {
	Dir     string
	Version string // version of the compiler: others generate different code
}

// DefaultDir returns the user's folder for cubins.
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("nvrtc: finding the kernel cache folder: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(dir, "fspda", "cubin"), nil
}

func (l *Library) Cache(dir string) *Cache {
	return &Cache{Dir: dir, Version: fmt.Sprintf("nvrtc %d.%d", l.Major, l.Minor)}
}

// Compile returns the cubin of s from the folder, or compiles and stores it. A file that cannot be
// read is compiled again. A failure to store is ignored, because the program can continue without
// the cache.
func (c *Cache) Compile(by Compiler, s Source) (Binary, error) {
	path := filepath.Join(c.Dir, c.key(s)+".cubin")
	if file, err := os.ReadFile(path); err == nil {
		if b, err := parse(file); err == nil {
			return b, nil
		}
	}
	b, err := by.Compile(s)
	if err != nil {
		return Binary{}, err
	}
	_ = wholefile.Write(path, format(b))
	return b, nil
}

// key returns a digest of everything that a cubin depends on.
func (c *Cache) key(s Source) string {
	h := sha256.New()
	part := func(p string) { fmt.Fprintf(h, "%d:%s;", len(p), p) }
	part(c.Version)
	part(s.Name)
	part(s.Text)
	part(s.Arch)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		part(name)
		part(s.Headers[name])
	}
	part(fmt.Sprint(len(s.Headers)))
	for _, o := range s.Options {
		part(o)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A cache file holds the magic, the SHA-256 of the rest, the length of the log in 4 bytes (little
// endian), the log, and the cubin.
const (
	magic  = "fspda cubin 1\n"
	header = len(magic) + sha256.Size + 4
)

func format(b Binary) []byte {
	rest := binary.LittleEndian.AppendUint32(nil, uint32(len(b.Log)))
	rest = append(append(rest, b.Log...), b.Cubin...)
	sum := sha256.Sum256(rest)
	return append(append([]byte(magic), sum[:]...), rest...)
}

func parse(file []byte) (Binary, error) {
	if len(file) < header || string(file[:len(magic)]) != magic {
		return Binary{}, errors.New("not a cubin file")
	}
	rest := file[header-4:]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:], file[len(magic):header-4]) {
		return Binary{}, errors.New("damaged cubin")
	}
	n := int(binary.LittleEndian.Uint32(rest))
	if n > len(rest)-4 {
		return Binary{}, errors.New("damaged cubin")
	}
	return Binary{Log: string(rest[4 : 4+n]), Cubin: rest[4+n:]}, nil
}
