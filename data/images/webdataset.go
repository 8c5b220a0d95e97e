package images

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	maxLabelFile = 1 << 20 // bytes of a .cls or .json; longer files are not labels
	maxClasses   = 1 << 20 // upper limit of a label
)

// sample is the state of a key.
type sample struct {
	key     string
	picture location
	name    string // name of the image; "" if not yet found
	class   string
	cls     bool // class is from .cls, which takes precedence
}

// webDataset lists shards in which the members of a sample are adjacent and share a key: the name
// up to the first dot.
func webDataset(path string, a *archives, o Options) (*Set, error) {
	l := newListing(path, kindWebDataset)
	_, _, left := Splits("", a.paths)
	for i, file := range a.paths {
		if slices.Contains(left, file) {
			l.notes = append(l.notes, "ignored in favour of the shards of val: "+file)
			continue
		}
		if err := l.shard(a, i, file); err != nil {
			return nil, err
		}
	}
	l.numberClasses()
	return l.set(a, o)
}

func (l *listing) shard(a *archives, i int, file string) error {
	split, word := splitOfFile(filepath.Base(file))
	f := l.split(split, word)
	var s sample
	flush := func() error {
		if s.name == "" {
			return nil
		}
		if s.class == "" {
			return &FormatError{Path: file, Got: "picture " + s.name + " without a label",
				Want: s.key + ".cls, or " + s.key + `.json with "label"`}
		}
		f.add(picture{name: shardName(a, i, s.name), class: s.class, at: s.picture})
		return nil
	}
	err := a.scan(i, func(from *os.File, m member) error {
		if m.dir || isHidden(m.name) {
			return nil
		}
		key, ext := splitKey(m.name)
		if key != s.key {
			if err := flush(); err != nil {
				return err
			}
			s = sample{key: key}
		}
		return l.part(&s, i, file, from, m, ext)
	})
	if err != nil {
		return err
	}
	return flush()
}

// part adds a member to a sample.
func (l *listing) part(s *sample, i int, file string, from *os.File, m member, ext string) error {
	switch {
	case isPicture(m.name):
		if s.name != "" {
			return &FormatError{Path: file, Got: "pictures " + s.name + " and " + m.name, Want: "one picture for a key"}
		}
		s.name, s.picture = m.name, location{file: int32(i), offset: m.offset, size: m.size}
	case ext == "cls" || ext == "json" && !s.cls:
		text, err := readLabelFile(file, from, m)
		if err != nil {
			return err
		}
		class, err := labelOf(ext, text)
		if err != nil {
			return &FormatError{Path: file, Got: fmt.Sprintf("member %s: %v", m.name, err),
				Want: `a class number, or JSON with "label"`, Err: err}
		}
		if class != "" {
			s.class, s.cls = class, ext == "cls"
		}
	case ext != "json":
		l.skip(m.name)
	}
	return nil
}

func readLabelFile(file string, from *os.File, m member) ([]byte, error) {
	if m.size > maxLabelFile {
		return nil, &FormatError{Path: file, Got: fmt.Sprintf("member %s of %d bytes", m.name, m.size),
			Want: fmt.Sprintf("at most %d for a label", maxLabelFile)}
	}
	text := make([]byte, m.size)
	if _, err := from.ReadAt(text, m.offset); err != nil {
		return nil, fmt.Errorf("images: reading %s: %w", file, err)
	}
	return text, nil
}

// labelOf reads the class of a .cls or .json: a number, or a name. A .json without a label has
// class "".
func labelOf(ext string, text []byte) (string, error) {
	if ext == "cls" {
		return checkLabel(strings.TrimSpace(string(text)))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", err
	}
	for _, key := range []string{"label", "cls"} {
		var number json.Number
		var name string
		switch value := fields[key]; {
		case value == nil:
		case json.Unmarshal(value, &name) == nil:
			return checkLabel(name)
		case json.Unmarshal(value, &number) == nil:
			return checkLabel(number.String())
		default:
			return "", fmt.Errorf("%s %s", key, value)
		}
	}
	return "", nil
}

func checkLabel(s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("an empty label")
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && (n != float64(int(n)) || n < 0 || n >= maxClasses) {
		return "", fmt.Errorf("label %s, want 0 to %d", s, maxClasses-1)
	} else if err == nil {
		return strconv.Itoa(int(n)), nil
	}
	if len(s) > 256 {
		return "", fmt.Errorf("a label of %d characters", len(s))
	}
	return s, nil
}

// splitKey splits a name at the first dot of its base name, as WebDataset does.
func splitKey(name string) (key, ext string) {
	dir, base := path.Split(name)
	base, ext, _ = strings.Cut(base, ".")
	return dir + base, strings.ToLower(ext)
}

// shardName makes a member's name unique over shards.
func shardName(a *archives, i int, name string) string {
	if len(a.paths) == 1 {
		return name
	}
	return filepath.Base(a.paths[i]) + "/" + name
}
