package web

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// PDF files embed their fonts, are reproducible, and support characters such as the minus sign.
func TestPDF(t *testing.T) {
	dir := runs["good"](t)
	for range 2 {
		if err := WritePlotsTo(dir, filepath.Join(dir, "pdf"), Layout{Formats: []string{"pdf"}}); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "pdf", "*.pdf"))
	if len(files) != 8 {
		t.Fatalf("%d files", len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("%PDF-1.")) || !bytes.Contains(text, []byte("/FontFile2")) ||
		!bytes.Contains(text, []byte("/MediaBox [0 0 480.00 320.00]")) {
		t.Errorf("not a page of 480 by 320 with its font: %.200s", text)
	}
	if other, _ := filepath.Glob(filepath.Join(dir, "pdf", "*.svg")); len(other) > 0 {
		t.Errorf("unrequested files: %v", other)
	}
	d := &drawing{w: 100, h: 100, alt: "a − λ"}
	d.text("v-title", 10, 50, start, "a − λ₂")
	first, err := d.pdf()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := d.pdf(); !bytes.Equal(first, again) {
		t.Error("the same drawing gave different bytes")
	}
	if err := WritePlotsTo(dir, t.TempDir(), Layout{Formats: []string{"gif"}}); err == nil {
		t.Error("no error for the unknown format gif")
	}
}
