package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Dash is the text of a number that is missing or not finite.
const Dash = "–"

// Prefixes lists the SI prefixes of 1000^0, 1000^1 and so on.
var Prefixes = []string{"", "k", "M", "G", "T", "P", "E"}

// SI writes v with a unit and an SI prefix in three significant digits: SI(1.234e6, "bit") is
// "1.23 Mbit".
func SI(v float64, unit string) string {
	if !finite(v) {
		return Dash
	}
	p := 0
	for p+1 < len(Prefixes) && math.Abs(v) >= 999.5 { // which three digits round to 1000
		v /= 1000
		p++
	}
	s := Significant(v, 3)
	if unit == "" && Prefixes[p] == "" {
		return s
	}
	return s + " " + Prefixes[p] + unit
}

// Significant writes v with n significant digits and without trailing zeros; tiny and huge numbers
// have an exponent.
func Significant(v float64, n int) string {
	if !finite(v) {
		return Dash
	}
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e6) {
		return scientific(v, n)
	}
	return Minus(strconv.FormatFloat(Round(v, n), 'f', -1, 64))
}

// scientific writes v as 1.23e−7. The font of the PNG files lacks a superscript minus.
func scientific(v float64, n int) string {
	mant, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', n-1, 64), "e")
	if strings.Contains(mant, ".") {
		mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
	}
	e, _ := strconv.Atoi(exp)
	return Minus(mant) + "e" + Minus(strconv.Itoa(e))
}

// Round rounds v to a number of significant digits.
func Round(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64) // cannot fail: formatted above
	return r
}

// Percent writes a share of 1 as a percentage with two decimals.
func Percent(share float64) string {
	if !finite(share) {
		return Dash
	}
	return Minus(strconv.FormatFloat(100*share, 'f', 2, 64)) + " %"
}

// Duration writes seconds as 1 h 02 min, 3 min 04 s or 5.67 s.
func Duration(s float64) string {
	switch {
	case !finite(s) || s < 0:
		return Dash
	case s < 59.95:
		return Significant(s, 3) + " s"
	case s < 3599.5:
		n := int(math.Round(s))
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	case s > 1e9: // not a plausible duration
		return Significant(s, 3) + " s"
	}
	n := int(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", n/60, n%60)
}

// Span returns seconds as a time.Duration: the longest one, 292 years, where they are more.
func Span(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// Minus replaces the hyphen of a negative number by a minus sign.
func Minus(s string) string { return strings.Replace(s, "-", "−", 1) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
