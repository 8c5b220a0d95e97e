package images

import (
	"fmt"
	"os"
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
			return nil, &FormatError{Path: pattern, Got: "a malformed pattern", Want: "*, ? and {000..147}", Err: err}
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

// Expand lists the files of a path for a [Format]: the matches of a pattern, or the path itself, or
// files with the given ending in a folder ROOT, in ROOT/data, in ROOT/SPLIT for the names of splits
// such as train, or in the same places of its only subfolder with such files (ROOT/default/SPLIT).
func Expand(path, ending string) ([]string, error) {
	if isPattern(path) {
		return expand(path)
	}
	if !isDir(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	files := shardsIn(path, entries, ending)
	if len(files) > 0 || len(entries) > maxConfigurations {
		return files, nil
	}
	from := ""
	for _, e := range entries {
		below := filepath.Join(path, e.Name())
		if isSystem(e.Name()) || !isDir(below) {
			continue
		}
		inner, err := os.ReadDir(below)
		if err != nil {
			return nil, fmt.Errorf("images: %w", err)
		}
		more := shardsIn(below, inner, ending)
		if len(more) > 0 && len(files) > 0 {
			return nil, &FormatError{Path: path, Got: "shards in " + from + " and in " + e.Name(),
				Want: "one set of pictures", Hint: "name one of these folders"}
		}
		if len(more) > 0 {
			files, from = more, e.Name()
		}
	}
	return files, nil
}

// numbered matches the name of a shard that says how many there are.
var numbered = regexp.MustCompile(`^(.*-)(\d+)-of-(\d+)(\.\w+)$`)

// MissingShard returns the first of the shards that are not in a list although the names of others say
// so, such as train-00001-of-00002.parquet; "" if the list is whole.
func MissingShard(files []string) string {
	have := map[string]bool{}
	for _, f := range files {
		have[filepath.Clean(f)] = true
	}
	seen := map[string]bool{}
	for _, f := range files {
		m := numbered.FindStringSubmatch(filepath.Base(f))
		if m == nil || seen[filepath.Join(filepath.Dir(f), m[1]+m[3])] {
			continue
		}
		seen[filepath.Join(filepath.Dir(f), m[1]+m[3])] = true
		of, err := strconv.Atoi(m[3])
		if err != nil || of > maxShards {
			continue
		}
		for n := range of {
			path := filepath.Join(filepath.Dir(f), fmt.Sprintf("%s%0*d-of-%s%s", m[1], len(m[2]), n, m[3], m[4]))
			if !have[path] {
				return path
			}
		}
	}
	return ""
}

// maxConfigurations limits the entries of a folder whose subfolders are searched for shards: a
// folder of classes may have thousands.
const maxConfigurations = 32

// shardsIn lists the shards in a folder, or else in its subfolders that are named data or as a
// split.
func shardsIn(dir string, entries []os.DirEntry, ending string) (files []string) {
	for _, e := range entries {
		if !isSystem(e.Name()) && strings.HasSuffix(e.Name(), ending) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	for _, e := range entries {
		if len(files) == 0 && holdsShards(e.Name()) {
			found, _ := filepath.Glob(filepath.Join(escapePattern(dir), "*", "*"+ending)) // well-formed
			for _, f := range found {
				if holdsShards(filepath.Base(filepath.Dir(f))) {
					files = append(files, f)
				}
			}
		}
	}
	return files
}

// holdsShards reports whether a folder of that name may hold shards: data, or a split.
func holdsShards(folder string) bool { return folder == "data" || parseSplit(folder).strict() }

// openShards opens several files as one set: files of a registered format, or archives.
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
			return f.open(pattern, o)
		}
	}
	return openArchives(pattern, files, o)
}
