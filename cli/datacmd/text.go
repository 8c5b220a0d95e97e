package datacmd

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/data/images"
	"fspda/data/images/parquet"
	"fspda/data/text"
	_ "fspda/data/text/gpt2" // registers the tokenizer
)

func newPrepareText() *cobra.Command {
	var f textFlags
	var out string
	cmd := &cobra.Command{
		Use:   "text IN --out DIR",
		Short: "Turn a text into tokens, in files that training maps into memory and nanoGPT reads",
		Long: `Turn a text into tokens: train.bin and val.bin, little-endian numbers of 16 bits as nanoGPT reads them, and meta.json, which
describes them. IN is a .txt file, or a folder of them; those in a subfolder have its name as their class. Or it is
a Parquet file with a column of texts, or a folder of such files.

The first 90% of the characters are the training text, unless the folder has the files train.txt and val.txt. With the
tokenizer gpt2 each of several files ends with the token 50256, with a tokenizer.json with its token for the end of a
text.

Each text of a table is a document, and ends so. Files named validation validate; without any, one document in a hundred
does.`,
		Example: "  fspda data prepare text input.txt --out shakespeare\n  fspda train --data text --data-dir " +
			"shakespeare --model gpt-nano",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return command.UsageErrorf("no --out given: name the folder that the files go to")
			}
			files, err := textTables(args[0])
			if err != nil {
				return err
			}
			if files != nil {
				return f.prepareTables(cmd, args[0], files, out)
			}
			for _, name := range []string{"tokens", "column"} {
				if cmd.Flags().Changed(name) {
					return command.UsageErrorf("--%s is for tables, and %s has none: leave it out", name, args[0])
				}
			}
			m, err := text.Prepare(args[0], f.tokenizer, out)
			if err != nil {
				return err
			}
			return printPrepared(cmd.OutOrStdout(), m, out)
		},
	}
	cmd.Flags().
		StringVar(&f.tokenizer, "tokenizer", "char", "char (the characters of the text), byte, gpt2 (the byte "+
			"pairs of GPT-2), or the path of a tokenizer.json of Hugging Face")
	cmd.Flags().StringVar(&out, "out", "", "folder of the files")
	f.add(cmd.Flags())
	return cmd
}

// textTables lists the Parquet files of a path; nil: it has none, or texts in files.
func textTables(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil && !info.IsDir() && filepath.Ext(path) != ".parquet" || hasTexts(path) {
		return nil, nil
	}
	files, err := images.Expand(path, ".parquet")
	if len(files) == 0 || err == nil && filepath.Ext(files[0]) != ".parquet" {
		return nil, nil // The text package names the missing file.
	}
	return files, err
}

// prepareTables makes tokens of a column of Parquet files.
func (f *textFlags) prepareTables(cmd *cobra.Command, path string, files []string, out string) error {
	t, err := f.open()
	if err != nil {
		return err
	}
	train, test, _ := images.Splits(path, files)
	return f.prepare(cmd, f.reading(train), f.reading(test), t, out)
}

// reading returns the texts of files; nil: there are no files.
func (f *textFlags) reading(files []string) text.Source {
	if len(files) == 0 {
		return nil
	}
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for _, file := range files {
				for text, err := range parquet.Texts(file, f.column) {
					if err == nil {
						err = ctx.Err()
					}
					if !yield(text, err) || err != nil {
						return
					}
				}
			}
		}
	}
}
