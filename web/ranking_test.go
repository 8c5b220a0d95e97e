package web

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The best setting is the highest line, one without a value the lowest.
func TestRanking(t *testing.T) {
	dots := []Dot{{Name: "lost", Mean: math.NaN()}, {Name: "fair", Mean: 0.5, Std: 0.1}, {Name: "<best>", Mean: 0.9,
		Std: 0.01, Marked: true}, {Name: "poor", Mean: 0.2, Std: math.NaN()}}
	r := &Ranking{Title: "Four settings", Caption: []string{"Three seeds."}, Panels: []RankingPanel{
		{Title: "at equal bits", Column: "test_acc_mean", Best: "max", Dots: dots},
		{Title: "at equal seconds", Column: "train_loss_worst", Best: "min", Dots: dots}}}
	base := filepath.Join(t.TempDir(), "ranking")
	if err := r.WriteImages(base); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(base + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	from := 0
	for _, want := range []string{"at equal bits", "&lt;best&gt;", "fair", "poor", "lost", "no value",
		"at equal seconds", "poor", "fair", "&lt;best&gt;", "lost", "no value", "Three seeds."} {
		at := strings.Index(string(text)[from:], ">"+want+"<")
		if at < 0 {
			t.Fatalf("%q is missing, or out of order", want)
		}
		from += at
	}
	if n := strings.Count(string(text), "<circle"); n != 6 {
		t.Errorf("%d dots, want 6", n)
	}
	if _, err := os.Stat(base + ".png"); err != nil {
		t.Error(err)
	}
}
