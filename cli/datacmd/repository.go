package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/data/fetch"
	"fspda/data/images"
	"fspda/data/images/parquet"
	"fspda/data/text"
)

// count is a number of tokens: 250000, 100M, 1.5B.
type count int64

func (c *count) String() string { return strconv.FormatInt(int64(*c), 10) }

func (*count) Type() string { return "count" }

func (c *count) Set(s string) error {
	factor, digits := 1.0, s
	for i, suffixes := range []string{"kK", "mM", "bBgG", "tT"} {
		if s != "" && strings.ContainsRune(suffixes, rune(s[len(s)-1])) {
			factor, digits = math.Pow10(3*(i+1)), s[:len(s)-1]
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if v *= factor; err != nil || v < 1 || v > 1e15 || v != math.Trunc(v) {
		return fmt.Errorf("%q, want a number of tokens of at least 1, such as 250000, 100M or 1.5B", s)
	}
	*c = count(v)
	return nil
}

// textFlags say how documents become tokens.
type textFlags struct {
	tokens            count
	tokenizer, column string
}

func (f *textFlags) add(fs *pflag.FlagSet) {
	fs.Var(&f.tokens, "tokens", "tables: how many training tokens to make, such as 100M; 0 is all of the set")
	fs.StringVar(&f.column, "column", "text", "tables: the column of the texts")
}

// repositoryFlags say which files of a repository are fetched, and where to.
type repositoryFlags struct {
	textFlags
	repository    fetch.Repository
	folder        string
	dir, out      string
	withTokenizer bool
}

func (f *repositoryFlags) add(fs *pflag.FlagSet) {
	f.textFlags.add(fs)
	fs.StringVar(&f.tokenizer, "tokenizer", "gpt2",
		"of texts: gpt2 (the byte pairs of GPT-2), byte, or the path of a tokenizer.json of Hugging Face")
	fs.StringVar(&f.repository.Revision, "revision", "main", "branch, tag or commit of the repository")
	fs.StringVar(&f.folder, "path", f.folder, "folder of the repository; empty is all of it")
	fs.StringVar(&f.dir, "dir", f.dir, "folder that the files go to; empty is data/NAME")
	fs.StringVar(&f.out, "out", "", "folder of the tokens of texts; empty is tokens in the folder of the files")
	fs.StringVar(&f.repository.Base, "url", fetch.HuggingFace, "address of the server")
}

func newDataHuggingFace() *cobra.Command {
	var f repositoryFlags
	cmd := &cobra.Command{
		Use:   "huggingface OWNER/NAME",
		Short: "Fetch the Parquet files of a data set at Hugging Face and verify them; make tokens of texts",
		Long: `Fetch the Parquet files of a data set at Hugging Face and verify them by their SHA-256. An interrupted download resumes where
it stopped. With --tokens or --tokenizer the set is one of texts: each file becomes tokens when it is there, and no more
files are fetched than --tokens needs. Files of validation validate; without any, one document in a hundred does.

A set that is given to registered persons needs the token of an account in the environment variable HF_TOKEN.`,
		Example: "  fspda data huggingface uoft-cs/cifar10 --dir data/cifar10-hf\n" +
			"  fspda data huggingface roneneldan/TinyStories --tokenizer gpt2",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.repository.Name = args[0]
			f.withTokenizer = cmd.Flags().Changed("tokens") || cmd.Flags().Changed("tokenizer")
			return f.run(cmd)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// fineWebEdu are the samples of FineWeb-Edu by the number of training tokens that they suffice for.
var fineWebEdu = []struct {
	tokens count
	folder string
}{{9e9, "sample/10BT"}, {90e9, "sample/100BT"}, {330e9, "sample/350BT"}, {math.MaxInt64, "data"}}

func newDataFineWebEdu() *cobra.Command {
	f := repositoryFlags{textFlags: textFlags{tokens: 100e6}, dir: filepath.Join("data", "fineweb-edu"),
		withTokenizer: true, repository: fetch.Repository{Name: "HuggingFaceFW/fineweb-edu"}}
	cmd := &cobra.Command{
		Use:   "fineweb-edu",
		Short: "Fetch pages of FineWeb-Edu and make tokens of them (100M by default)",
		Long: `Fetch pages of FineWeb-Edu from Hugging Face, verify them, and make tokens of them. A file has about 2.2 GB and 700 million tokens;
as many are fetched as --tokens needs, from the smallest sample that has them. An interrupted download resumes where it
stopped, and files that are there are not fetched again.`,
		Example: "  fspda data fineweb-edu --tokens 100M\n  fspda train --data text --data-dir " +
			"data/fineweb-edu/tokens --model gpt2",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i := 0; f.folder == ""; i++ {
				if f.tokens <= fineWebEdu[i].tokens {
					f.folder = fineWebEdu[i].folder
				}
			}
			return f.run(cmd)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().Lookup("path").Usage = "folder of the repository; empty is the smallest sample with so many tokens"
	return cmd
}

func (f *repositoryFlags) run(cmd *cobra.Command) error {
	if err := checkAddresses([]string{f.repository.Base}, true); err != nil {
		return err
	}
	if f.dir == "" {
		f.dir = filepath.Join("data", filepath.Base(f.repository.Name))
	}
	f.repository.Token = os.Getenv("HF_TOKEN")
	var t text.Tokenizer
	if f.withTokenizer { // A wrong tokenizer is refused before anything is fetched.
		var err error
		if t, err = f.open(); err != nil {
			return err
		}
	}
	set, err := f.repository.Tables(cmd.Context(), strings.Trim(f.folder, "/"))
	if err != nil {
		return err
	}
	var size int64
	for _, file := range set.Files {
		size += file.Size
	}
	stderr := cmd.ErrOrStderr()
	fmt.Fprintf(stderr, "%s: %d Parquet files, %s, commit %s\n", set.Name, len(set.Files), command.Bytes(uint64(size)),
		set.Commit)
	if t == nil {
		return f.fetchAll(cmd, set)
	}
	if f.out == "" {
		f.out = filepath.Join(f.dir, "tokens")
	}
	train, test := f.splits(set)
	return f.prepare(cmd, f.fetching(set, train, stderr), f.fetching(set, test, stderr), t, f.out)
}

func (f *repositoryFlags) splits(set fetch.Set) (train, test []fetch.File) {
	byPath, paths := map[string]fetch.File{}, []string{}
	for _, file := range set.Files {
		path := filepath.Join(f.dir, filepath.FromSlash(file.Name))
		byPath[path], paths = file, append(paths, path)
	}
	trainPaths, testPaths, _ := images.Splits(f.dir, paths)
	for _, p := range trainPaths {
		train = append(train, byPath[p])
	}
	for _, p := range testPaths {
		test = append(test, byPath[p])
	}
	return train, test
}

// fetchAll fetches all files of a set, and prints the command that uses them.
func (f *repositoryFlags) fetchAll(cmd *cobra.Command, set fetch.Set) error {
	p := newTransfer(cmd.ErrOrStderr())
	fetched, err := set.Fetch(cmd.Context(), f.dir, nil, p.set)
	p.close()
	if err != nil {
		return stopped(cmd, f.dir, err)
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s: %d files fetched, %d already present; all verified\n", f.dir, len(fetched),
		len(set.Files)-len(fetched))
	first := filepath.Join(f.dir, filepath.FromSlash(set.Files[0].Name))
	if parquet.HasTexts(first, f.column) {
		fmt.Fprintf(w, "make tokens of it: fspda data prepare text %s --tokenizer gpt2 --out %s\n", f.dir,
			filepath.Join(f.dir, "tokens"))
	} else {
		fmt.Fprintf(w, "train on it: fspda train --data folder --data-dir %s\n", f.dir)
	}
	return nil
}

// stopped says how a fetch that was interrupted goes on.
func stopped(cmd *cobra.Command, dir string, err error) error {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(cmd.ErrOrStderr(), "stopped; the files fetched so far are kept: the same command resumes")
		return command.ErrStopped
	}
	return command.CannotWrite(dir, "choose a folder that you may write to with --dir", err)
}

// fetching returns the texts of files, each of which is fetched when its turn comes; nil: there are
// no files.
func (f *repositoryFlags) fetching(set fetch.Set, files []fetch.File, stderr io.Writer) text.Source {
	if len(files) == 0 {
		return nil
	}
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i, file := range files {
				if i > 0 && !yield(nil, nil) {
					return
				}
				one := set
				one.Files = []fetch.File{file}
				p := newTransfer(stderr)
				_, err := one.Fetch(ctx, f.dir, nil, p.set)
				p.close()
				if err != nil {
					yield(nil, err)
					return
				}
				for text, err := range parquet.Texts(filepath.Join(f.dir, filepath.FromSlash(file.Name)), f.column) {
					if !yield(text, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

func (f *textFlags) open() (text.Tokenizer, error) {
	if f.tokenizer == "char" {
		return nil, command.UsageErrorf("--tokenizer char needs all characters of a text beforehand: use gpt2, byte " +
			"or the path of a tokenizer.json for tables")
	}
	return text.FindTokenizer(f.tokenizer)
}

// prepare makes tokens of texts, and prints its progress and its result.
func (f *textFlags) prepare(cmd *cobra.Command, train, val text.Source, t text.Tokenizer, out string) error {
	if train == nil {
		return command.UsageErrorf("the set has files of validation only: name another folder or revision")
	}
	var o text.DocumentOptions
	var bar *command.Progress
	if f.tokens > 0 {
		o.Tokens = int64(f.tokens)
		bar = command.NewProgress(cmd.ErrOrStderr(), "tokens", o.Tokens, false)
		o.Progress = func(n int64) { bar.Set(n, "") }
	}
	m, err := text.PrepareDocuments(cmd.Context(), train, val, t, out, o)
	if bar != nil {
		bar.Close()
	}
	if err != nil {
		return stopped(cmd, out, err)
	}
	if o.Tokens > m.Train.Tokens {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: the set has no more than these tokens, of %s asked for\n",
			command.Thousands(uint64(o.Tokens)))
	}
	return printPrepared(cmd.OutOrStdout(), m, out)
}

// printPrepared prints the sizes of a folder of tokens.
func printPrepared(w io.Writer, m *text.Meta, out string) error {
	_, err := fmt.Fprintf(w, "%s: %s training and %s validation tokens of %s, vocabulary %s\n"+
		"train on it: fspda train --data text --data-dir %s --model gpt-nano\n", out,
		command.Thousands(uint64(m.Train.Tokens)), command.Thousands(uint64(m.Val.Tokens)), m.Name,
		command.Thousands(uint64(m.Vocabulary)), out)
	return err
}
