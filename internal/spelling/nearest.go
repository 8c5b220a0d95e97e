package spelling

import "github.com/agnivade/levenshtein"

// Nearest returns the name with the smallest edit distance to wrong, the first of several, or "" if
// the distance exceeds two letters or a third of wrong.
func Nearest(wrong string, names []string) string {
	best, at := "", 1+max(2, len(wrong)/3)
	for _, n := range names {
		if d := levenshtein.ComputeDistance(wrong, n); d < at {
			best, at = n, d
		}
	}
	return best
}
