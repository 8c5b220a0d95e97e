package web

import (
	"math"
	"strconv"
	"strings"

	"fspda/internal/units"
)

// grouped formats an integer with thin spaces between groups of three digits: 1 234 567.
func grouped(v float64) string {
	if !finite(v) {
		return units.Dash
	}
	s := strconv.FormatFloat(math.Abs(math.Round(v)), 'f', 0, 64)
	var b strings.Builder
	if math.Round(v) < 0 {
		b.WriteString("−")
	}
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteRune('\u2009')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
