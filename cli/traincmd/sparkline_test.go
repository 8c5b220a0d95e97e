package traincmd

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/metric"
)

func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		values []float64
		width  int
		log    bool
		want   string
	}{
		"up":            {[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 20, false, "▁▂▃▄▅▆▇█"},
		"averaged":      {[]float64{0, 0, 4, 4, 7.9, 8}, 3, false, "▁▅█"},
		"logarithmic":   {[]float64{1, 10, 100, 1000}, 9, true, "▁▃▆█"},
		"flat":          {[]float64{3, 3}, 9, false, "▅▅"},
		"gaps":          {[]float64{nan, 1, math.Inf(1), 2}, 9, false, " ▁ █"},
		"zero on a log": {[]float64{0, 1, 10}, 9, true, " ▁█"},
		"nothing":       {nil, 9, false, ""},
	} {
		if got := sparkline(c.values, c.width, c.log); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// visibleLines emulates enough of a terminal to return the lines that it shows.
func visibleLines(text string) []string {
	lines, at, col := []string{""}, 0, 0
	for _, m := range regexp.MustCompile(`\x1b\[(\d*)([AJK])|\r|\n|[^\r\n\x1b]+`).FindAllStringSubmatch(text, -1) {
		switch n, _ := strconv.Atoi(m[1]); {
		case m[0] == "\n":
			at, col = at+1, 0
			if at == len(lines) {
				lines = append(lines, "")
			}
		case m[0] == "\r":
			col = 0
		case m[2] == "A":
			at -= n
		case m[2] == "J":
			lines = lines[:at+1]
			lines[at] = string([]rune(lines[at])[:min(col, len([]rune(lines[at])))])
		case m[2] == "K":
			lines[at] = ""
		default:
			row, in := []rune(lines[at]), []rune(m[0])
			for len(row) < col+len(in) {
				row = append(row, ' ')
			}
			copy(row[col:], in)
			lines[at], col = string(row), col+len(in)
		}
	}
	return lines
}

// Curves appear once, above the bar and below log lines, and stay when the bar is removed.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	s := &terminal{w: &out, width: func() int { return 60 }}
	s.bar = newBar(&out, 100)
	var c curves
	for k := range 30 {
		c.add(train.Row{TrainScores: metric.TrainScores{TrainLossAvg: train.Num(3 - 0.1*float64(k)), Consensus: 1},
			TestScores: metric.TestScores{TestAccAvg: train.Num(0.03 * float64(k))}})
		s.set(c.lines(60))
		s.move(int64(3*k), "loss")
		if k == 10 {
			if _, err := s.Write([]byte("a warning\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.end(true)
	var got []string
	for _, l := range visibleLines(out.String()) {
		if l = strings.TrimSpace(l); l != "" {
			got = append(got, l)
		}
	}
	if len(got) != 4 || got[0] != "a warning" || !strings.HasPrefix(got[1], "loss       █") ||
		!strings.HasSuffix(got[1], "▁ 0.1") ||
		!strings.HasSuffix(got[2], "█ 87.00 %") || !strings.HasPrefix(got[3], "consensus  ▅▅▅") {
		t.Errorf("the terminal shows\n%s", strings.Join(got, "\n"))
	}
}

func TestNarrowTerminal(t *testing.T) {
	var c curves
	for range 3 {
		c.add(train.Row{TrainScores: metric.TrainScores{TrainLossAvg: 1}})
	}
	if l := c.lines(30); l != nil {
		t.Errorf("%q", l)
	}
	for _, l := range c.lines(45) {
		if n := len([]rune(l)); n > 45 {
			t.Errorf("%d cells: %q", n, l)
		}
	}
}
