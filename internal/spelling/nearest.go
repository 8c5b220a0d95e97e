package spelling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the name most similar to wrong, whatever the case of letters: a name of which
// wrong is a word, as storm of fspda-storm, or else the one with the smallest edit distance, the
// first of several. If this distance exceeds two letters or a third of wrong, it returns the first
// name that contains wrong, or "". A number is no misspelling: for one it returns "".
func Nearest(wrong string, names []string) string {
	wrong = strings.ToLower(wrong)
	if strings.Trim(wrong, "0123456789.") == "" {
		return ""
	}
	best, at, word, part := "", 1+max(2, len(wrong)/3), "", ""
	for _, n := range names {
		lower := strings.ToLower(n)
		if d := levenshtein.ComputeDistance(wrong, lower); d < at && d < len(wrong) {
			best, at = n, d
		}
		if len(wrong) < 4 || !strings.Contains(lower, wrong) {
			continue
		}
		part = cmp.Or(part, n)
		if slices.Contains(strings.Split(lower, "-"), wrong) {
			word = cmp.Or(word, n)
		}
	}
	switch {
	case at > 1 && word != "":
		return word
	case best == "":
		return part
	}
	return best
}
