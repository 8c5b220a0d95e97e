package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWritePlots(t *testing.T) {
	for _, name := range []string{"good", "single", "wide"} { // TestChartTextsDisjoint draws the charts of all runs
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := runs[name](t)
			if err := WritePlots(dir); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(filepath.Join(dir, "plots"))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != 2*len(charts)*len(axes) { // also fails if a temporary file remains
				t.Errorf("%d files, want %d", len(files), 2*len(charts)*len(axes))
			}
			for _, f := range files {
				checkPicture(t, filepath.Join(dir, "plots", f.Name()))
			}
			keep(t, filepath.Join(dir, "plots"), name)
		})
	}
}

// checkPicture checks that a file is a PNG of the right size, or a well-formed SVG without NaN and
// Inf.
func checkPicture(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".png") {
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if s := img.Bounds().Size(); s.X != chartW*pngDPI/72 || s.Y != chartH*pngDPI/72 {
			t.Errorf("%s: size %v", path, s)
		}
		return
	}
	checkSVG(t, path, b)
}

func checkSVG(t *testing.T, name string, b []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, ok := tok.(xml.StartElement)
		for _, a := range e.Attr {
			if ok && a.Name.Local != "font-family" && (strings.Contains(a.Value, "NaN") ||
				strings.Contains(a.Value, "Inf")) {
				t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

// Damaged metrics leave existing pictures unchanged.
func TestWritePlotsDamaged(t *testing.T) {
	dir := folder(t, "metrics.jsonl", jsonl(t, evaluations(30)))
	path := filepath.Join(dir, "plots", "training_loss-bits.svg")
	if err := WritePlots(dir); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := WritePlots(dir); err == nil || !strings.Contains(err.Error(), "metrics.jsonl:1:") {
		t.Errorf("damaged metrics: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, before) {
		t.Errorf("the earlier image changed (%v)", err)
	}
}

func TestWritePlotsErrors(t *testing.T) {
	if err := WritePlots(t.TempDir()); err == nil || !strings.Contains(err.Error(), "metrics.jsonl") {
		t.Errorf("no metrics: %v", err)
	}
	blocked := folder(t, "metrics.jsonl", "", "plots", "a file where the folder should be")
	if err := WritePlots(blocked); err == nil || !strings.Contains(err.Error(), "plots") {
		t.Errorf("blocked folder: %v", err)
	}
}
