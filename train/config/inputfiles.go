package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"fspda/data"
	"fspda/dist"
	"fspda/internal/bounded"
)

// readDigests sets s.Files: a run is the same only if the content of these files is the same.
func (s *Setup) readDigests() error {
	c := &s.Config
	files := []struct{ key, value, path string }{
		{"graph", c.Graph, dist.FilePath(c.Graph)}, {"edges", string(c.Edges), dist.FilePath(string(c.Edges))},
		{"partition", c.Partition, ""}, {"membership", c.Membership, ""},
	}
	if c.Membership != fixedMembers && c.Membership != elasticMembers {
		files[3].path = c.Membership
	}
	if p, err := data.ParsePartition(c.Partition); err == nil {
		if f, ok := p.(data.File); ok {
			files[2].path = f.Path
		}
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		digest, err := fileDigest(f.path)
		if err != nil {
			return &Error{Key: f.key, Got: f.value, Err: err}
		}
		if s.Files == nil {
			s.Files = map[string]string{}
		}
		s.Files[f.key] = digest
	}
	return nil
}

// fileDigest identifies the content of a file.
func fileDigest(path string) (string, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
