//go:build !windows

package command

import "testing"

func TestUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bits(0), "0 bit"}, {Bits(999), "999 bit"}, {Bits(7632960), "7.63 Mbit"},
		{Bits(1 << 62), "4.61 Ebit"}, {Bits(999_999), "1 Mbit"},
		{Bytes(999_999_999), "1 GB"}, {Seconds(59.97), "1 min 0 s"}, {Seconds(3599.7), "1 h 0 min"},
		{Thousands(7), "7"}, {Thousands(79510), "79,510"}, {Thousands(25557032), "25,557,032"},
		{Seconds(12.34), "12.3 s"}, {Seconds(125), "2 min 5 s"}, {Seconds(7260), "2 h 1 min"},
		{Number(0.123456), "0.1235"}, {Number(0.00001), "1.00e-05"}, {Number(0), "0"},
		{Printable("a b"), "a b"}, {Printable("猫"), "猫"}, {Printable("tab\tx"), `"tab\tx"`}, {Printable(""), `""`},
		{Printable("\u202eabc"), `"\u202eabc"`}, {Printable(`e"f`), `e"f`}, {Printable("-x "), `"-x "`},
		{Percent(0.1), "10%"}, {Percent(0.067), "6.7%"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
