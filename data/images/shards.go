package images

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxShards is the largest number of files of a pattern.
const maxShards = 100000

var braces = regexp.MustCompile(`\{(\d+)\.\.(\d+)\}`)

// isPattern reports whether a path names several files.
func isPattern(path string) bool { return braces.MatchString(path) || strings.ContainsAny(path, "*?") }

// expand lists the files of a pattern, sorted. Numbers in braces have as many digits as the first
// bound.
func expand(pattern string) ([]string, error) {
	all := []string{pattern}
	for braces.MatchString(all[0]) {
		var next []string
		for _, p := range all {
			more, err := expandBraces(p)
			if err != nil {
				return nil, err
			}
			if next = append(next, more...); len(next) > maxShards {
				return nil, &FormatError{Path: pattern, Got: "a pattern for very many files",
					Want: fmt.Sprintf("at most %d", maxShards)}
			}
		}
		all = next
	}
	if !strings.ContainsAny(pattern, "*?") {
		return all, nil
	}
	var files []string
	for _, p := range all {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, &FormatError{Path: pattern, Got: "a malformed pattern",
				Want: "*, ? and {000..147}", Err: err}
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func expandBraces(p string) ([]string, error) {
	at := braces.FindStringSubmatchIndex(p)
	first := p[at[2]:at[3]]
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(p[at[4]:at[5]])
	if err1 != nil || err2 != nil || to < from || to-from >= maxShards {
		return nil, &FormatError{Path: p, Got: "the range " + p[at[0]:at[1]],
			Want: fmt.Sprintf("a range like {000..147} of at most %d files", maxShards)}
	}
	out := make([]string, 0, to-from+1)
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("%s%0*d%s", p[:at[0]], len(first), n, p[at[1]:]))
	}
	return out, nil
}

// Expand lists the files of a path for a [Format]: those of a pattern, those with the given ending
// in a folder or its subfolder data, or the path itself.
func Expand(path, ending string) ([]string, error) {
	if isPattern(path) {
		return expand(path)
	}
	if !isDir(path) {
		return []string{path}, nil
	}
	files, err := expand(filepath.Join(escapePattern(path), "*"+ending))
	if err != nil || len(files) > 0 {
		return files, err
	}
	return expand(filepath.Join(escapePattern(path), "data", "*"+ending))
}

// openShards opens several files as one set: files of a registered format, or tars of WebDataset.
func openShards(pattern string, o Options) (*Set, error) {
	files, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, &FormatError{Path: pattern, Got: "no file of such a name", Want: "at least one"}
	}
	for _, f := range registered {
		if f.Recognise(files[0]) {
			return f.Open(pattern, o)
		}
	}
	a, err := openArchives(files)
	if err != nil {
		return nil, err
	}
	kind, err := peek(a)
	if err == nil && kind != kindWebDataset {
		err = &FormatError{Path: files[0], Got: "a " + kind,
			Want: "shards of WebDataset (key.jpg and key.cls) where several tars are named",
			Hint: "name one tar"}
	}
	var s *Set
	if err == nil {
		s, err = webDataset(pattern, a, o)
	}
	if err != nil {
		_ = a.Close() // return the first error
		return nil, err
	}
	s.OnClose(a)
	return s, nil
}
