package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"fspda/internal/bounded"
)

// fileForms are the values of keys that read a file: of each key the words before (path).
var fileForms = map[string][]string{"graph": {"file"}, "edges": {"arcs", "trace"}, "partition": {"file"}}

// readDigests sets s.Files: a run is the same only if these files hold what they held at its start.
func (s *Setup) readDigests() error {
	c := &s.Config
	for key, value := range map[string]string{"graph": c.Graph, "edges": c.Edges, "partition": c.Partition} {
		for _, form := range fileForms[key] {
			name, arg, _ := strings.Cut(value, "(")
			if strings.TrimSpace(name) != form {
				continue
			}
			digest, err := fileDigest(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(arg), ")")))
			if err != nil {
				return &Error{Key: key, Got: value, Err: err}
			}
			if s.Files == nil {
				s.Files = map[string]string{}
			}
			s.Files[key] = digest
		}
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
