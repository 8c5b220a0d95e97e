package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/data/images"
	"fspda/data/images/packed"
)

func newDataPrepare() *cobra.Command {
	var (
		o        = packed.Options{Settings: packed.Settings{Size: 256, Format: packed.Raw}}
		open     images.Options
		out, bad string
	)
	cmd := &cobra.Command{
		Use:   "prepare SRC --out DIR",
		Short: "Scale the pictures of a set once and pack them into files that training maps into memory",
		Long: `Scale the pictures of a set once and pack them into files that training maps into memory.

SRC is a folder of class folders, a tar of it, ImageNet's original tars, WebDataset or Parquet shards, or a folder of
save_to_disk. A text is prepared by the command below. A preparation that was stopped, or killed at any moment,
resumes when it is called again; the result is
the same, to the last byte.`,
		Example: "  fspda data prepare ~/imagenet --out ~/imagenet-256\n  fspda train --data imagenet --data-dir " +
			"~/imagenet-256 --model resnet50",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch bad {
			case "skip", "fail":
				o.Fail = bad == "fail"
			default:
				return command.UsageErrorf("--on-bad %q, want skip or fail", bad)
			}
			if out == "" {
				return command.UsageErrorf("no --out given: name the folder that the packed set goes to")
			}
			for name, n := range map[string]int{"size": o.Size, "quality": o.Quality, "max-pixels": o.MaxPixels} {
				if cmd.Flags().Changed(name) && n < 1 {
					return command.UsageErrorf("--%s %d: expected at least 1", name, n)
				}
			}
			open.MaxPixels = o.MaxPixels
			return prepareImages(cmd.Context(), args[0], open, out, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&out, "out", "", "folder of the packed set")
	fs.IntVar(&o.Size, "size", o.Size, "pixels of the short side; larger pictures are scaled down to it")
	fs.StringVar(&o.Format, "format", o.Format, "raw (fastest to read) or jpeg (about an eighth of the disk)")
	fs.IntVar(&o.Quality, "quality", 0, "of jpeg, 1 to 100; the default is 90")
	fs.StringVar(&bad, "on-bad", "skip",
		"what becomes of a picture that cannot be decoded: skip (and list it in bad.jsonl) or fail")
	fs.IntVar(&o.Jobs, "jobs", 0, "pictures worked on at a time; the default is the number of cores")
	fs.IntVar(&o.MaxPixels, "max-pixels", 100e6, "a picture whose header says more is bad")
	sourceFlags(fs, &open)
	cmd.AddCommand(newPrepareText())
	return cmd
}

// prepareImages packs a set and prints its progress and its result.
func prepareImages(ctx context.Context, src string, open images.Options, out string, o packed.Options, stdout,
	stderr io.Writer) error {
	set, err := images.Open(src, open)
	if errors.Is(err, images.ErrNoPictures) {
		if r, textErr := inspectText(src, images.Options{}, false); r != nil || textErr != nil {
			return errors.Join(command.UsageErrorf("%s has no pictures, but *.txt or tokens: fspda data prepare text "+
				"packs a text", src), textErr)
		}
	}
	if err != nil {
		return err
	}
	defer set.Close() // read only: nothing to lose
	for _, note := range set.Notes {
		fmt.Fprintf(stderr, "note: %s\n", note)
	}
	total := countOf(set.Train) + countOf(set.Test)
	fmt.Fprintf(stderr, "%s: %s, %s pictures in %d classes: %s\n", src, set.Kind, command.Thousands(uint64(total)),
		len(set.Classes), set.Layout)
	g := command.NewProgress(stderr, "preparing", int64(total), false)
	o.Progress = func(done, bad int) {
		note := ""
		if bad > 0 {
			note = fmt.Sprintf(" (%d bad)", bad)
		}
		g.Set(int64(done), note)
	}
	m, err := packed.Prepare(ctx, set, out, o)
	g.Close()
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "stopped; finished files are kept: the same command resumes\n")
		return command.ErrStopped
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %s training and %s test pictures in %d classes, %s in %d files\n", out,
		command.Thousands(uint64(m.Train.Pictures)), command.Thousands(uint64(m.Test.Pictures)), len(m.Classes),
		command.Bytes(uint64(m.Bytes())), len(m.Train.Shards)+len(m.Test.Shards))
	if n := m.Train.Bad + m.Test.Bad; n > 0 {
		fmt.Fprintf(stdout, "%d bad images were left out: %s lists them with the reasons\n", n,
			filepath.Join(out, "bad.jsonl"))
	}
	fmt.Fprintf(stdout, "train on it: fspda train --data folder --data-dir %s\n", out)
	return nil
}

func countOf(s images.Source) int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// checkReport is the output of fspda data check for an intact set.
type checkReport struct {
	Path   string `json:"path"`
	Intact bool   `json:"intact"`
	Bytes  int64  `json:"bytes"`
	Files  int    `json:"files"`
}

func newDataCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify every byte of a packed set of pictures",
		Args:  onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := packed.ReadManifest(args[0])
			if err != nil {
				if r, _ := inspectText(args[0], images.Options{}, false); r != nil {
					return command.UsageErrorf("%s is a text, which has no checksums: fspda data info checks "+
						"that its tokens are those of its vocabulary, and prints their SHA-256", args[0])
				}
				return err
			}
			g := command.NewProgress(cmd.ErrOrStderr(), "checking", m.Bytes(), true)
			var done int64
			err = packed.Check(cmd.Context(), args[0], func(n int) {
				done += int64(n)
				g.Set(done, "")
			})
			g.Close()
			if err != nil {
				return err
			}
			files := len(m.Train.Shards) + len(m.Test.Shards)
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), checkReport{args[0], true, m.Bytes(), files})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is intact: %s in %d files\n", args[0],
				command.Bytes(uint64(m.Bytes())), files)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
