package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// dash is shown for a number that is missing or not finite.
const dash = "–"

// prefixes lists the SI prefixes of 1000^0, 1000^1 and so on.
var prefixes = []string{"", "k", "M", "G", "T", "P", "E"}

// si formats v with a unit and an SI prefix in three significant digits: si(1.234e6, "bit") is
// "1.23 Mbit".
func si(v float64, unit string) string {
	if !finite(v) {
		return dash
	}
	p := 0
	for p+1 < len(prefixes) && math.Abs(v) >= 999.5 {
		v /= 1000
		p++
	}
	s := significant(v, 3)
	if unit == "" && prefixes[p] == "" {
		return s
	}
	return s + " " + prefixes[p] + unit
}

// significant formats v with n significant digits and without trailing zeros; tiny and huge numbers
// have an exponent.
func significant(v float64, n int) string {
	if !finite(v) {
		return dash
	}
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e6) {
		return scientific(v, n)
	}
	return minus(strconv.FormatFloat(rounded(v, n), 'f', -1, 64))
}

// rounded rounds v to n significant digits.
func rounded(v float64, n int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64) // cannot fail: formatted above
	return r
}

// scientific formats v as 1.23e−7. The font of the PNG files lacks a superscript minus.
func scientific(v float64, n int) string {
	mant, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', n-1, 64), "e")
	if strings.Contains(mant, ".") {
		mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
	}
	e, _ := strconv.Atoi(exp)
	return minus(mant) + "e" + minus(strconv.Itoa(e))
}

// percent formats the fraction v as a percentage with two decimals.
func percent(v float64) string {
	if !finite(v) {
		return dash
	}
	return minus(strconv.FormatFloat(100*v, 'f', 2, 64)) + " %"
}

// grouped formats an integer with thin spaces between groups of three digits: 1 234 567.
func grouped(v float64) string {
	if !finite(v) {
		return dash
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

// duration formats seconds as 1 h 02 min, 3 min 04 s or 5.67 s.
func duration(s float64) string {
	switch {
	case !finite(s) || s < 0:
		return dash
	case s < 59.95:
		return significant(s, 3) + " s"
	case s < 3599.5:
		n := int(math.Round(s))
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	case s > 1e9: // not a plausible duration
		return significant(s, 3) + " s"
	}
	n := int(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", n/60, n%60)
}

// minus replaces the hyphen of a negative number by a minus sign.
func minus(s string) string { return strings.Replace(s, "-", "−", 1) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
