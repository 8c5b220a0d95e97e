package runscmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fspda/cli/command"
	"fspda/train"
	"fspda/train/runfolder"
	"fspda/web"
)

var statuses = []string{"finished", "stopped", "diverged", "running"}

type runsFlags struct {
	dir    string
	status []string
	older  time.Duration
	keep   int
	yes    bool
	json   bool
}

func newRuns() *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{
		Use:   "runs [list] [WORD...]",
		Args:  cobra.ArbitraryArgs,
		Short: "List runs, the latest first, and prune them",
		Long: `List the runs in a folder, the latest first: how they ended, what they reached, what they sent. With words, those that
have all of them in name, algorithm, data, graph or status. A run is running while a process holds its lock. Symbolic
links to runs, and to folders of runs, are followed.`,
		Example: "  fspda runs\n  fspda runs dsgd ring --status finished\n  fspda runs prune --status " +
			"diverged,stopped --older 168h",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "list" {
				args = args[1:]
			}
			runs, unknown, err := f.choose(args)
			switch {
			case err != nil:
				return err
			case f.json:
				return command.PrintJSON(cmd.OutOrStdout(), runs)
			case len(unknown) > 0:
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "no run in %s has %s in its name, algorithm, data, graph or "+
					"status\n", f.dir, strings.Join(unknown, " or "))
				return err
			}
			return listRuns(cmd.OutOrStdout(), f.dir, runs)
		},
	}
	fs := cmd.PersistentFlags()
	fs.StringVar(&f.dir, "dir", command.RunsDir, "folder of the runs")
	fs.StringSliceVar(&f.status, "status", nil, "only those that are: "+strings.Join(statuses, ", "))
	fs.DurationVar(&f.older, "older", 0, "only those whose metrics have not grown for so long, such as 168h")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(newPrune(&f))
	return cmd
}

func newPrune(f *runsFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune [WORD...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Delete the folders of runs, after asking",
		Long: `Delete the folders of the runs that are chosen by words and flags, after asking. A running run is not deleted, nor is
a folder with files that no run writes, nor a run that is there by a symbolic link.`,
		Example: "  fspda runs prune --status diverged\n  fspda runs prune choco --keep 3 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return prune(*f, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&f.keep, "keep", 0, "leave the latest so many of those chosen")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// choose returns the selected runs, and the words that no run has.
func (f *runsFlags) choose(words []string) (chosen []web.RunInfo, unknown []string, err error) {
	for _, s := range f.status {
		if !slices.Contains(statuses, s) {
			return nil, nil, command.UsageErrorf("--status %q: expected %s%s", s, strings.Join(statuses, ", "),
				command.DidYouMean(s, statuses, ""))
		}
	}
	if f.older < 0 || f.keep < 0 {
		return nil, nil, command.UsageErrorf("--older and --keep must not be negative")
	}
	all, err := web.FindRuns(f.dir)
	if errors.Is(err, os.ErrNotExist) && f.dir == command.RunsDir {
		return []web.RunInfo{}, nil, nil // no run has been made here yet
	}
	if err != nil {
		return nil, nil, &train.FolderError{Path: f.dir, Got: "cannot be opened", Err: err,
			Hint: "name the folder of the runs with --dir"}
	}
	chosen, unknown = []web.RunInfo{}, slices.Clone(words)
	for _, r := range all {
		text := strings.ToLower(strings.Join([]string{r.Name, r.Algo, r.Data, r.Graph, ended(r)}, " "))
		has := func(word string) bool { return strings.Contains(text, strings.ToLower(word)) }
		unknown = slices.DeleteFunc(unknown, has)
		fits := !slices.ContainsFunc(words, func(word string) bool { return !has(word) })
		if fits && (len(f.status) == 0 || slices.Contains(f.status, r.Status)) &&
			(f.older == 0 || time.Since(time.Unix(r.Changed, 0)) >= f.older) {
			chosen = append(chosen, r)
		}
	}
	return chosen, unknown, nil
}

func listRuns(w io.Writer, dir string, runs []web.RunInfo) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintf(w, "no such runs in %s\n", dir)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\tstatus\talgorithm\tdata\tagents\tgraph\taccuracy\tbits\tlatest")
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	percent := func(v float64) string { return strconv.FormatFloat(100*v, 'f', 2, 64) + " %" }
	bits := func(v float64) string { return command.Bits(uint64(v)) }
	for _, r := range runs {
		fmt.Fprintln(t, strings.Join([]string{printable(filepath.Join(dir, r.Run)), ended(r), cmp.Or(r.Algo, "–"),
			cmp.Or(r.Data, "–"), shown(r.Agents, whole), cmp.Or(r.Graph, "–"), shown(r.Accuracy, percent),
			shown(r.Bits, bits), time.Unix(r.Changed, 0).Format("2006-01-02 15:04")}, "\t"))
	}
	return t.Flush()
}

// ended says how a run ended, and whether it has failed to converge.
func ended(r web.RunInfo) string {
	if r.Failure != "" {
		return r.Status + ", failed to converge"
	}
	return r.Status
}

// printable returns a path as it is, or quoted if it would break the lines of a table.
func printable(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

func shown(v *float64, write func(float64) string) string {
	if v == nil {
		return "–"
	}
	return write(*v)
}

// prune deletes the selected runs.
func prune(f runsFlags, words []string, stdin io.Reader, stdout io.Writer) error {
	runs, _, err := f.choose(words)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r web.RunInfo) bool { return r.Status == "running" || linked(f.dir, r.Run) })
	runs = runs[min(f.keep, len(runs)):]
	switch {
	case f.json && !f.yes:
		return command.UsageErrorf("--json asks nothing: add --yes to delete the runs, or leave prune out to list them")
	case f.json:
		return pruneAll(f.dir, runs, func(deleted []string) error {
			return command.PrintJSON(stdout, map[string][]string{"deleted": deleted})
		})
	case len(runs) == 0:
		_, err := fmt.Fprintln(stdout, "nothing to delete")
		return err
	}
	if !f.yes {
		if err := listRuns(stdout, f.dir, runs); err != nil {
			return err
		}
		if ok, err := confirm(fmt.Sprintf("Delete these %d runs? [y/N] ", len(runs)), stdin, stdout); !ok ||
			err != nil {
			return err
		}
	}
	return pruneAll(f.dir, runs, func(deleted []string) error {
		for _, path := range deleted {
			fmt.Fprintf(stdout, "deleted %s\n", printable(path))
		}
		return nil
	})
}

func linked(dir, run string) bool {
	whole, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(run)))
	own, ownErr := filepath.EvalSymlinks(dir)
	return err != nil || ownErr != nil || whole != filepath.Join(own, filepath.FromSlash(run))
}

// pruneAll deletes runs and reports the deleted ones, also if deleting others failed.
func pruneAll(dir string, runs []web.RunInfo, tell func(deleted []string) error) error {
	deleted := []string{}
	var errs []error
	for _, r := range runs {
		path := filepath.Join(dir, filepath.FromSlash(r.Run))
		if err := runfolder.RemoveFolder(path); err != nil {
			errs = append(errs, err)
			continue
		}
		deleted = append(deleted, path)
	}
	return errors.Join(append(errs, tell(deleted))...)
}

// confirm asks on a terminal. Elsewhere nobody can answer, and --yes is required.
func confirm(question string, stdin io.Reader, stdout io.Writer) (bool, error) {
	if file, ok := stdin.(*os.File); ok && !term.IsTerminal(int(file.Fd())) {
		return false,
			command.UsageErrorf("the standard input is no terminal, so nobody can confirm: add --yes to delete them")
	}
	fmt.Fprint(stdout, question)
	answer, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	_, err = fmt.Fprintln(stdout, "nothing was deleted")
	return false, err
}
