package traincmd

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"fspda/cli/command"
	"fspda/train"
)

// end prints the summary: a table, or JSON, or nothing.
func (d *display) end(folder string, sum train.Summary) error {
	switch {
	case d.flags.json:
		return command.PrintJSON(d.stdout, sum)
	case d.flags.quiet:
		return nil
	}
	title := d.what()
	if d.terminal != nil {
		title = nil // it was printed at the start
	}
	lines := rows(folder, sum, d.looked())
	if sum.Failure != "" {
		lines = append([][3]string{{"convergence", "failed", sum.Failure}}, lines...)
	}
	_, err := fmt.Fprint(d.stdout, table(title, lines))
	return err
}

// rows returns the lines of the final table: a name, its value, and an explanation.
func rows(folder string, s train.Summary, looked string) [][3]string {
	acc := func(n train.Num) string { return fmt.Sprintf("%.2f %%", 100*float64(n)) }
	of, loss := "of the mean model", "of the mean model"
	if s.BN != "" {
		of += ", batch norm " + batchNorm[s.BN]
	}
	if s.Metrics == "test" {
		loss = "of the agents' last batches"
	}
	var r [][3]string
	if p := s.Perplexity; p > 0 {
		r = append(r, [3]string{"validation loss", command.Number(s.TestLossAvg), "nats a token, " + of},
			[3]string{"perplexity", command.Number(p), command.Number(s.BitsPerByte) + " bits per byte"})
	}
	r = append(r, [][3]string{
		{"test accuracy", acc(s.TestAccAvg), "top-1, " + of},
		{"", acc(s.TestTop5Avg), "top-5"},
		{"", fmt.Sprintf("%.2f – %.2f %%", 100*float64(s.TestAccMin), 100*float64(s.TestAccMax)),
			fmt.Sprintf("top-1 over the agents%s, mean %s", looked, acc(s.TestAccMean))},
		{"training loss", command.Number(s.TrainLossAvg), fmt.Sprintf("%s; worst agent%s %s", loss, looked,
			command.Number(s.TrainLossWorst))},
	}...)
	if !math.IsNaN(float64(s.GradSqWorst)) {
		r = append(r, [3]string{"|∇F|²", command.Number(s.GradSqWorst), "squared gradient norm, worst agent" + looked})
	}
	r = append(r, [3]string{"consensus error", command.Number(s.Consensus), "Σ|x_i − x̄|²"})
	if !math.IsNaN(float64(s.DualSum)) {
		r = append(r, [3]string{"sum of duals", command.Number(s.DualSum), "zero up to rounding"})
	}
	if s.LargestDecode > 0 {
		r = append(r, [3]string{"lattice", fmt.Sprintf("%s far", command.Thousands(s.FarDecodes)),
			fmt.Sprintf("points near the border of its radius, where it may decode wrong; the furthest %s away",
				command.Number(s.LargestDecode))})
	}
	if s.LossScale > 0 {
		r = append(r, [3]string{"loss scale", command.Number(s.LossScale),
			fmt.Sprintf("of fp16, the smallest of the agents; %s gradients were not finite and were left out",
				command.Thousands(s.Skipped))})
	}
	if s.VirtualTime > 0 {
		unit := "in gradients of a mean agent"
		if s.Links != "" {
			unit = "seconds; links of " + s.Links
		}
		r = append(r, [3]string{"virtual time", command.Number(s.VirtualTime), unit},
			[3]string{"", command.Number(s.TimeTo90),
				fmt.Sprintf("to 90 %% of the best accuracy; to 50, 80, 95 %%: %s, %s, %s",
					command.Number(s.TimeTo50), command.Number(s.TimeTo80), command.Number(s.TimeTo95))})
	}
	return append(r,
		[3]string{"bits sent", command.Bits(s.BitsTotal), fmt.Sprintf("%s accounting; packed %s, reference %s",
			s.Accounting,
			command.Bits(s.BitsPacked), command.Bits(s.BitsReference))},
		[3]string{"iterations", command.Thousands(uint64(s.Iterations)),
			fmt.Sprintf("in %s, %.0f a second on %d threads",
				command.Seconds(s.WallS), s.IterationsPerS, s.Threads)},
		[3]string{"report", string(s.Status), filepath.Join(folder, "report.html")},
	)
}

// batchNorm explains where the batch norm statistics of the mean model come from, by the key bn.
var batchNorm = map[string]string{"pooled": "pooled from the agents", "recalibrate": "recalibrated",
	"local": "of each agent in turn"}

// table formats rows below the lines of a title.
func table(title []string, rows [][3]string) string {
	var w [3]int
	for _, r := range rows {
		for i, c := range r {
			w[i] = max(w[i], utf8.RuneCountInString(c))
		}
	}
	rule := strings.Repeat("─", w[0]+w[1]+w[2]+6)
	var b strings.Builder
	for _, line := range title {
		fmt.Fprintf(&b, "\n%s", line)
	}
	fmt.Fprintf(&b, "\n%s\n", rule)
	for _, r := range rows {
		fmt.Fprintf(&b, " %s  %s  %s\n", pad(r[0], w[0]), pad(r[1], w[1]), r[2])
	}
	fmt.Fprintf(&b, "%s\n", rule)
	return b.String()
}

// pad appends spaces up to a width in runes.
func pad(s string, width int) string { return s + strings.Repeat(" ", width-utf8.RuneCountInString(s)) }
