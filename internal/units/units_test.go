package units

import (
	"math"
	"testing"
)

func TestSI(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "bit", "0 bit"}, {5, "bit", "5 bit"}, {999, "bit", "999 bit"}, {999.6, "bit", "1 kbit"},
		{999_999, "bit", "1 Mbit"}, {1234567, "bit", "1.23 Mbit"}, {10e6, "bit", "10 Mbit"},
		{1.2e9, "bit", "1.2 Gbit"}, {9.996e11, "B", "1 TB"}, {3e20, "bit", "300 Ebit"}, {3e25, "bit", "3e7 Ebit"},
		{-2500, "B", "−2.5 kB"}, {12, "", "12"}, {45000, "", "45 k"}, {math.NaN(), "bit", Dash},
		{math.Inf(1), "bit", Dash},
	} {
		if got := SI(c.v, c.unit); got != c.want {
			t.Errorf("SI(%g, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Significant(0, 3), "0"}, {Significant(0.12345, 4), "0.1235"}, {Significant(1.5, 4), "1.5"},
		{Significant(123456, 3), "123000"}, {Significant(1234567, 3), "1.23e6"}, {Significant(-2e-7, 3), "−2e−7"},
		{Significant(1e-300, 4), "1e−300"}, {Significant(math.NaN(), 3), Dash}, {Significant(math.Inf(-1), 3), Dash},
		{Significant(5e6, 1), "5e6"},
		{Percent(0.97421), "97.42 %"}, {Percent(0), "0.00 %"}, {Percent(1), "100.00 %"}, {Percent(math.NaN()), Dash},
		{Duration(0), "0 s"}, {Duration(5.678), "5.68 s"}, {Duration(59.96), "1 min 00 s"},
		{Duration(184), "3 min 04 s"},
		{Duration(3599.6), "1 h 00 min"}, {Duration(3720), "1 h 02 min"}, {Duration(100 * 3600), "100 h 00 min"},
		{Duration(1e300), "1e300 s"}, {Duration(-1), Dash}, {Duration(math.NaN()), Dash},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
