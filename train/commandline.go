package train

import (
	"path/filepath"
	"regexp"
	"strings"
)

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// CommandLine writes the arguments of a program so that a shell reads them back: words with signs
// of the shell in quotes, and the program by its name alone, since its place is another elsewhere.
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
