package runfolder

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the computer: processor, system, architecture.
func Machine() string {
	name := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(text), "\n") {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value) + ", "
				break
			}
		}
	}
	return name + runtime.GOOS + "/" + runtime.GOARCH
}

// plainWord matches words that a shell does not change.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// CommandLine formats the arguments of a program for a shell, with quotes where needed. The program
// is given without its folder, which differs between machines.
func CommandLine(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if i == 0 {
			a = strings.TrimSuffix(filepath.Base(a), ".exe")
		}
		if !plainWord.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words[i] = a
	}
	return strings.Join(words, " ")
}

// ModuleVersion returns the version of the program's main module.
func ModuleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path + " " + info.Main.Version
	}
	return ""
}
