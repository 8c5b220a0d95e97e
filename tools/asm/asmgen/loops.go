package asmgen

import "strings"

// Loop returns the instructions of a loop among the lines of a function for arm64: from a label to
// the last jump back to it.
func Loop(lines []string, label string) (loop []string) {
	inside := false
	last := 0
	for _, l := range lines {
		switch {
		case l == label+":":
			inside = true
		case inside && strings.HasPrefix(l, "TEXT"):
			return loop[:last]
		case inside && !strings.HasSuffix(l, ":"):
			loop = append(loop, l)
			if fields := strings.Fields(l); strings.HasPrefix(l, "B") && fields[len(fields)-1] == label {
				last = len(loop)
			}
		}
	}
	return loop[:last]
}

// Count returns how many lines have one of the instructions.
func Count(lines []string, names ...string) (n int) {
	for _, l := range lines {
		for _, name := range names {
			if l == name || strings.HasPrefix(l, name+" ") {
				n++
			}
		}
	}
	return n
}
