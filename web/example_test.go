package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fspda/web"
)

// A run with two evaluations gets its plots and its report.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	lines := `{"iteration":0,"train_loss_worst":2.31,"test_acc_avg":0.11,"bits_total":0}
{"iteration":500,"train_loss_worst":0.42,"test_acc_avg":0.88,"bits_total":2.5e8}
`
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(lines), 0o666); err != nil {
		panic(err)
	}

	if err := web.WritePlots(dir); err != nil {
		fmt.Println(err)
	}
	if err := web.WriteReport(dir); err != nil {
		fmt.Println(err)
	}

	plots, _ := filepath.Glob(filepath.Join(dir, "plots", "*.svg"))
	for _, p := range plots {
		fmt.Println(filepath.Base(p))
	}
	page, _ := os.ReadFile(filepath.Join(dir, "report.html"))
	fmt.Println(strings.Contains(string(page), "88.00 %"), strings.Contains(string(page), "250 Mbit"))
	// Output:
	// consensus_error-bits.svg
	// consensus_error-iteration.svg
	// gradient_norm-bits.svg
	// gradient_norm-iteration.svg
	// test_accuracy-bits.svg
	// test_accuracy-iteration.svg
	// training_loss-bits.svg
	// training_loss-iteration.svg
	// true true
}
