package spelling

import "github.com/agnivade/levenshtein"

// Nearest returns the name most like the wrong one, the first of several, or "" where none is near:
// more than two letters, or a third of the wrong name, away.
func Nearest(wrong string, names []string) string {
	best, at := "", 1+max(2, len(wrong)/3)
	for _, n := range names {
		if d := levenshtein.ComputeDistance(wrong, n); d < at {
			best, at = n, d
		}
	}
	return best
}
