package asmgen

import (
	"regexp"
	"strings"
)

var text = regexp.MustCompile(`^TEXT ·(\w+)\(SB\)`)

// Functions returns the lines of every function of a file by name: instructions and labels, without
// white space around them.
func Functions(f File) (map[string][]string, error) {
	files, err := f.Print()
	if err != nil {
		return nil, err
	}
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(string(files[f.Asm()])) {
		line = strings.TrimSpace(line)
		if m := text.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if name != "" && line != "" {
			all[name] = append(all[name], line)
		}
	}
	return all, nil
}
