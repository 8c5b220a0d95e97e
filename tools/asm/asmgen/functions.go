package asmgen

import (
	"regexp"
	"strings"
)

var text = regexp.MustCompile(`^TEXT ·(\w+)\(SB\)`)

// Functions returns the lines of every function of a file for amd64 by name: instructions and
// labels, without white space around them.
func Functions(f File) (map[string][]string, error) { return f.functions(f.Asm()) }

// FunctionsArm64 returns those for arm64. Instead of a word they have the instruction that it stands
// for.
func FunctionsArm64(f File) (map[string][]string, error) { return f.functions(f.AsmArm64()) }

func (f File) functions(file string) (map[string][]string, error) {
	files, err := f.Print()
	if err != nil {
		return nil, err
	}
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(string(files[file])) {
		line = strings.TrimSpace(line)
		if m := text.FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		if _, comment, ok := strings.Cut(line, " // "); ok {
			line = comment
		}
		if name != "" && line != "" && !strings.HasPrefix(line, "//") {
			all[name] = append(all[name], line)
		}
	}
	return all, nil
}
