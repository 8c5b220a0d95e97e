package images

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	maxLabelFile = 1 << 20 // bytes of a .cls or .json; longer files are not labels
	maxClasses   = 1 << 20 // upper limit of a label
)

// sidecars are the files of labels beside pictures, by the name of their picture and their extension.
type sidecars struct {
	tree  *tree
	files map[string]int
	exts  map[string]bool // extensions that occur
	of    map[int]string  // pictures by the file of their label
}

// beside finds the files of labels beside pictures.
func (t *tree) beside() *sidecars {
	s := &sidecars{tree: t, files: map[string]int{}, exts: map[string]bool{}, of: map[int]string{}}
	for i, e := range t.entries {
		switch ext := strings.ToLower(path.Ext(e.name)); ext {
		case ".cls", ".json", ".txt":
			if !e.dir {
				s.files[stemOf(e.name)+ext], s.exts[ext] = i, true
			}
		}
	}
	return s
}

// find returns the file of a picture's label: that of its whole name, or else that of its key, which
// in a WebDataset ends at the first dot.
func (s *sidecars) find(picture, ext string) (i int, ok bool) {
	if !s.exts[ext] {
		return 0, false
	}
	if i, ok = s.files[stemOf(picture)+ext]; !ok {
		i, ok = s.files[keyOf(picture)+ext]
	}
	return i, ok
}

// maxCaption is the number of words from which a text beside a picture is no label.
const maxCaption = 4

// label reads the label of a picture from a file beside it; "" if there is none.
func (s *sidecars) label(e entry, ext string) (class string, at int, err error) {
	i, ok := s.find(e.name, ext)
	if !ok {
		return "", -1, nil
	}
	file := s.tree.entries[i]
	text, err := s.tree.read(file, maxLabelFile)
	if err != nil {
		return "", i, err
	}
	if ext == ".txt" && (len(strings.Fields(string(text))) > maxCaption ||
		strings.Contains(strings.TrimSpace(string(text)), "\n")) {
		return "", i, &FormatError{Path: s.tree.where(file), Got: "a text that is no label in " + file.name,
			Want: "a number or a name of at most " + strconv.Itoa(maxCaption) + " words",
			Hint: "captions and boxes say no class: write labels to .cls files or metadata.csv"}
	}
	if class, err = labelOf(ext[1:], text); err != nil {
		return "", i, &FormatError{Path: s.tree.where(file), Got: fmt.Sprintf("member %s: %v", file.name, err),
			Want: `a class number, or JSON with "label"`, Err: err}
	}
	if class == "" {
		return "", i, nil
	}
	if other, twice := s.of[i]; twice {
		return "", i, &FormatError{Path: s.tree.where(e), Got: "pictures " + other + " and " + e.name,
			Want: "one picture for a key", Hint: "both have the label of " + file.name}
	}
	s.of[i] = e.name
	return class, i, nil
}

// probed is the number of files of JSON that are read to see whether they have labels.
const probed = 256

// hasLabels reports whether pictures have labels beside them, in files with one of the extensions.
// Damage counts only where folders name no classes.
func (s *sidecars) hasLabels(needed bool, exts ...string) (bool, error) {
	looked := 0
	for _, e := range s.tree.entries {
		if e.dir || !isPicture(e.name) {
			continue
		}
		for _, ext := range exts {
			if _, ok := s.find(e.name, ext); !ok {
				continue
			}
			if ext == ".cls" {
				return true, nil
			}
			class, _, err := s.label(e, ext)
			if err != nil && needed {
				return false, err
			}
			if class != "" && err == nil {
				clear(s.of)
				return true, nil
			}
			if looked++; looked == probed {
				return false, nil
			}
		}
	}
	return false, nil
}

// labels reads the labels of all pictures. One in a .cls goes before one in a .json.
func (s *sidecars) labels(exts ...string) (*labels, error) {
	lab := newLabels(s.tree)
	lab.beside = true
	read := map[string]bool{}
	for i, e := range s.tree.entries {
		if e.dir || !isPicture(e.name) {
			continue
		}
		for _, ext := range exts {
			class, at, err := s.label(e, ext)
			if err != nil {
				return nil, err
			}
			if at >= 0 {
				lab.used[at], read[ext] = true, true
			}
			if lab.class[i] = class; class != "" {
				if json, ok := s.find(e.name, ".json"); ok {
					lab.used[json] = true
				}
				break
			}
		}
	}
	lab.about = strings.Join(slices.Sorted(maps.Keys(read)), " and ") + " files beside them"
	if n := len(s.of); n > 3 && len(read) == 1 && read[".txt"] && lab.distinct() == n {
		return nil, &FormatError{Path: s.tree.path, Got: fmt.Sprintf("%d texts beside pictures, all different", n),
			Want: "labels, which repeat", Hint: "write labels to .cls files or metadata.csv"}
	}
	return lab, nil
}

// labelKeys are the keys of JSON that hold a label.
var labelKeys = []string{"label", "cls", "class", "class_name", "category", "target", "class_id", "label_id"}

// labelOf reads the class of a .cls or .json: a number, or a name. A .json without a label has
// class "".
func labelOf(ext string, text []byte) (string, error) {
	if ext != "json" {
		return checkLabel(strings.TrimSpace(string(text)))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", err
	}
	for i, key := range labelKeys {
		var number json.Number
		var name string
		switch value := fields[key]; {
		case value == nil:
		case json.Unmarshal(value, &name) == nil:
			return checkLabel(name)
		case json.Unmarshal(value, &number) == nil:
			return checkLabel(number.String())
		case i < 2: // what other keys hold may be anything
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
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("label %q, which is no text", s)
	}
	if len(s) > 256 {
		return "", fmt.Errorf("a label of %d characters", len(s))
	}
	return s, nil
}

// keyOf is a name up to the first dot of its base name, as in a WebDataset.
func keyOf(name string) string {
	dir, base := path.Split(name)
	base, _, _ = strings.Cut(base, ".")
	return dir + base
}
