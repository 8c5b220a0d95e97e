package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	_ "fspda/data/images/parquet" // opens parquet shards
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Fetch, look at, prepare and verify data sets",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return &usageError{fmt.Sprintf("unknown command %q%s", "data "+args[0],
				didYouMean(args[0], commandNames(cmd), ""))}
		},
	}
	cmd.AddCommand(newDataInfo(), newDataPrepare(), newDataCheck(), newDataMNIST(), newDataCIFAR10(), newDataImageNet())
	return cmd
}

// onePath wants the path of a data set.
func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return &usageError{"no path given: name a folder, an archive or shards with pictures"}
	case 1:
		return nil
	}
	return &usageError{fmt.Sprintf(
		"unexpected argument %q: one path is enough; put a pattern such as 'shard-{000..147}.tar' in quotes", args[1])}
}

// gauge shows how far a long piece of work is: as a bar on a terminal, as a line now and then
// elsewhere.
type gauge struct {
	w     io.Writer
	what  string
	bar   *progressbar.ProgressBar // nil where there is no terminal
	total int64
	told  time.Time // when a line was written
}

func newGauge(w io.Writer, what string, total int64, inBytes bool) *gauge {
	g := &gauge{w: w, what: what, total: max(total, 1), told: time.Now()}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		unit := progressbar.OptionSetItsString("pictures")
		if inBytes {
			unit = progressbar.OptionShowBytes(true)
		}
		g.bar = progressbar.NewOptions64(g.total, progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what), unit,
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond))
	}
	return g
}

// set moves the gauge. note is added to what is going on.
func (g *gauge) set(done int64, note string) {
	if g.bar != nil {
		g.bar.Describe(g.what + note)
		_ = g.bar.Set64(done) // a terminal that is gone is no reason to stop
		return
	}
	if time.Since(g.told) > 10*time.Second {
		g.told = time.Now()
		fmt.Fprintf(g.w, "%s %d%%%s\n", g.what, 100*done/g.total, note)
	}
}

func (g *gauge) close() {
	if g.bar != nil {
		_ = g.bar.Clear()
	}
}
