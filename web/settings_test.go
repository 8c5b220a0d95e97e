package web

import (
	"errors"
	"math"
	"os"
	"testing"
)

func TestSettings(t *testing.T) {
	dir := folder(t, "config.yaml",
		"algo: sa \nagents: 10\ndensity: 0.1\nnothing: null\nlist: [1, x]\nbad: .nan\nbig: 1.0e+30\nodd: {a: .inf}\n",
		"summary.json", `{"seed":12345678,"wall_s":1.5,"device":"cpu"}`)
	r := &run{}
	err := errors.Join(r.readFiles(dir, os.ReadFile)...)
	text, c, s := r.yaml, r.config, r.summary
	if err != nil || text == "" {
		t.Fatal(text, err)
	}
	for _, k := range []struct{ got, want string }{
		{c.text("algo"), "sa"}, {c.text("agents"), "10"}, {c.text("density"), "0.1"}, {c.text("nothing"),
			""}, {c.text("absent"), ""},
		{c.text("list"), `[1,"x"]`}, {c.text("bad"), "NaN"}, {c.text("big"), "1e+30"}, {c.text("odd"), "map[a:+Inf]"},
		{s.text("seed"), "12345678"}, {first("device", c, s), "cpu"}, {first("absent", c, s),
			""}, {settings(nil).text("x"), ""},
	} {
		if k.got != k.want {
			t.Errorf("got %q, want %q", k.got, k.want)
		}
	}
	if s.number("wall_s") != 1.5 || !math.IsNaN(s.number("device")) || !math.IsNaN(settings(nil).number("x")) {
		t.Error("numbers are wrong")
	}
}

func TestSettingsMissing(t *testing.T) {
	r := &run{}
	if err := errors.Join(r.readFiles(t.TempDir(), os.ReadFile)...); err != nil || len(r.missing) != 3 {
		t.Error(r.missing, err)
	}
	if r.yaml != "" || r.config != nil || r.summary != nil || r.shards != nil {
		t.Errorf("read from an empty folder: %+v", r)
	}
}
