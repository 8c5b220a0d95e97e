package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The report of a run of text has its loss, its perplexity and what the model wrote, escaped.
func TestReportOfText(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("metrics.jsonl", `{"iteration":0,"test_loss_avg":4.17,"test_loss_mean":4.2,"perplexity":64.7,"bits_per_byte":6.0}
{"iteration":10,"test_loss_avg":2.3,"test_loss_mean":2.4,"perplexity":9.97,"bits_per_byte":3.32}
`)
	write("samples.jsonl", `{"iteration":0,"text":"<b>q\u001b[2Jz"}
{"iteration":10,"text":"ROMEO:\nAy me!"}
{"iter`)
	if err := WriteReport(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"report.html": {"Validation loss", "Bits per byte", "&lt;b&gt;q", "ROMEO:\nAy me!", "Perplexity", "9.97"},
		"report.md":   {"plots/perplexity-bits.svg", "ROMEO:\nAy me!", "Iteration 10:"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
		if strings.Contains(string(b), "\x1b") {
			t.Errorf("%s has a control character", name)
		}
	}
	if err := WritePlots(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "plots", "validation_loss-bits.svg")); err != nil {
		t.Error(err)
	}
	write("samples.jsonl", "no JSON\n")
	if err := WriteReport(dir); err == nil || !strings.Contains(err.Error(), "samples.jsonl:1") {
		t.Errorf("a damaged sample: %v", err)
	}
}
