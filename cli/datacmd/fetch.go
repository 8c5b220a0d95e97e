package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/data/fetch"
)

func newDataMNIST() *cobra.Command {
	return newDataFetch("mnist", "Fetch MNIST (12 MB) and verify it", fetch.MNIST(),
		func(dir string) string { return dir })
}

func newDataCIFAR10() *cobra.Command {
	return newDataFetch("cifar10", "Fetch CIFAR-10 (170 MB) and verify it", fetch.CIFAR10(), func(dir string) string {
		return filepath.Join(dir, "cifar-10-binary.tar.gz")
	})
}

func newDataCIFAR100() *cobra.Command {
	return newDataFetch("cifar100", "Fetch CIFAR-100 (169 MB) and verify it", fetch.CIFAR100(),
		func(dir string) string {
			return filepath.Join(dir, "cifar-100-binary.tar.gz")
		})
}

func newDataFashionMNIST() *cobra.Command {
	return newDataFetch("fashion-mnist", "Fetch Fashion-MNIST (31 MB) and verify it", fetch.FashionMNIST(),
		func(dir string) string { return dir })
}

// newDataFetch returns the command that fetches a set. path returns the value of --data-dir for the
// set in a folder.
func newDataFetch(name, short string, set fetch.Set, path func(dir string) string) *cobra.Command {
	var dir string
	var bases []string
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Long:  short + ".\n\nAn existing file is verified; an interrupted download resumes where it stopped.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkAddresses(bases, cmd.Flags().Changed("url")); err != nil {
				return err
			}
			p := newTransfer(cmd.ErrOrStderr())
			fetched, err := set.Fetch(cmd.Context(), dir, bases, p.set)
			p.close()
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(cmd.ErrOrStderr(), "stopped; the files fetched so far are kept: the same command resumes")
				return command.ErrStopped
			}
			if err != nil {
				return command.CannotWrite(dir, "choose a folder that you may write to with --dir", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d files fetched, %d already present; all verified\n", dir,
				len(fetched), len(set.Files)-len(fetched))
			fmt.Fprintf(cmd.OutOrStdout(), "train on it: fspda train --data %s --data-dir %s\n", name, path(dir))
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", filepath.Join("data", name), "folder that the files go to")
	cmd.Flags().StringSliceVar(&bases, "url", nil,
		"address that file names are appended to; the default is "+set.Bases[0]+" and then others")
	return cmd
}

// checkAddresses checks the flag --url.
func checkAddresses(bases []string, given bool) error {
	if given && len(bases) == 0 {
		return command.UsageErrorf("--url is empty: give an address that begins with https:// or http://, or " +
			"leave it out")
	}
	for _, base := range bases {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return command.UsageErrorf("--url %q: expected an address that begins with https:// or http://", base)
		}
	}
	return nil
}

// transfer shows the progress of several files, one after the other.
type transfer struct {
	w    io.Writer
	name string
	file *command.Progress
}

func newTransfer(w io.Writer) *transfer { return &transfer{w: w} }

func (t *transfer) set(name string, done, total int64) {
	if name != t.name {
		t.close()
		t.name, t.file = name, command.NewProgress(t.w, name, total, true)
	}
	t.file.Set(done, "")
}

func (t *transfer) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// imageNetHowTo explains how to get the files: they are given to registered persons only.
const imageNetHowTo = `ImageNet (ILSVRC 2012) is free for research, but its files are given to registered persons only:

  1. Make an account at https://image-net.org, ask for access, and download from the page of ILSVRC 2012 (tasks 1 and 2)
     ILSVRC2012_img_train.tar  148 GB  MD5 1d675b47d978889d74fa0da5fadfb00e
     ILSVRC2012_img_val.tar    6.7 GB  MD5 29b22e2961454d5413ddabcf34fc5622
  2. Get the classes of the validation pictures: LOC_val_solution.csv of Kaggle's "ImageNet Object Localization
     Challenge", or any text of 50,000 lines "ILSVRC2012_val_00000001.JPEG n01751748", named val.txt.
  3. Put all three into one folder, not unpacked, and call: fspda data imagenet --dir FOLDER
  4. Pack them once (about 340 GB as raw, 40 GB with --format jpeg): fspda data prepare FOLDER --out PACKED

Folders train/n01440764/*.JPEG and val/n01440764/*.JPEG, a tar of them, WebDataset shards, and the parquet shards of
ILSVRC/imagenet-1k at Hugging Face (an account there, too) are read
as well: fspda data info PATH says what a path holds.
`

func newDataImageNet() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "imagenet",
		Short: "Explain how to get ImageNet, or verify its files",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				_, err := io.WriteString(cmd.OutOrStdout(), imageNetHowTo)
				return err
			}
			p := newTransfer(cmd.ErrOrStderr())
			reports, err := fetch.ImageNet().Verify(cmd.Context(), dir, p.set)
			p.close()
			if err != nil {
				return err
			}
			return imageNetVerdict(cmd.OutOrStdout(), dir, reports)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder that holds the original files: verify them")
	return cmd
}

// imageNetVerdict prints which files are intact, and the next step.
func imageNetVerdict(w io.Writer, dir string, reports []fetch.Report) error {
	var wrong []error
	for _, r := range reports {
		switch {
		case r.Err == nil:
			fmt.Fprintf(w, "%s: intact\n", r.Path)
		case errors.Is(r.Err, os.ErrNotExist):
			wrong = append(wrong, fmt.Errorf("%s is missing", r.Path))
		default:
			wrong = append(wrong, r.Err)
		}
	}
	if len(wrong) > 0 {
		return command.UsageErrorf("%v\nfspda data imagenet says how to get it", errors.Join(wrong...))
	}
	fmt.Fprintf(w, "prepare it: fspda data prepare %s --out %s\n", dir, filepath.Clean(dir)+"-256")
	return nil
}
