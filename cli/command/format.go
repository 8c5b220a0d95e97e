package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"fspda/internal/units"
	"fspda/train"
)

// Bytes writes a number of bytes with a decimal unit.
func Bytes(n uint64) string { return units.SI(float64(n), "B") }

// Bits writes a number of bits with a decimal unit.
func Bits(n uint64) string { return units.SI(float64(n), "bit") }

// Duration writes a number of seconds with three digits and a unit.
func Duration(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return Seconds(s)
}

// Number writes a number with four significant digits.
func Number(n train.Num) string {
	v := float64(n)
	if math.IsNaN(v) {
		return "–"
	}
	if v != 0 && (math.Abs(v) < 1e-3 || math.Abs(v) >= 1e5) {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return strconv.FormatFloat(Round(v), 'f', -1, 64)
}

// Round rounds to four significant digits.
func Round(v float64) float64 { return units.Round(v, 4) }

// Percent writes a share of 1 as a percentage.
func Percent(share float64) string { return strconv.FormatFloat(Round(100*share), 'f', -1, 64) + "%" }

// Printable returns a name for messages. A name is quoted, with escapes, if it is empty, has
// characters that cannot be printed, or has spaces at its ends or next to each other.
func Printable(name string) string {
	if name == "" || name != strings.TrimSpace(name) || strings.Contains(name, "  ") ||
		strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Thousands writes a number with commas.
func Thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

const year = 365.25 * 24 * 3600

// Seconds writes a number of seconds in seconds, minutes, hours or years.
func Seconds(s float64) string {
	whole := math.Round(s)
	switch {
	case math.IsNaN(s) || s >= year:
		return units.Significant(s/year, 3) + " years"
	case s < 59.95: // which one decimal rounds to 60
		return fmt.Sprintf("%.1f s", s)
	case whole < 3600:
		return fmt.Sprintf("%.0f min %.0f s", math.Floor(whole/60), math.Mod(whole, 60))
	}
	return fmt.Sprintf("%.0f h %.0f min", math.Floor(whole/3600), math.Floor(math.Mod(whole, 3600)/60))
}
