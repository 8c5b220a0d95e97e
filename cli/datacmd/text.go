package datacmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/data/text"
	_ "fspda/data/text/gpt2" // registers the tokenizer
)

func newPrepareText() *cobra.Command {
	var tokenizer, out string
	cmd := &cobra.Command{
		Use:   "text IN --out DIR",
		Short: "Turn a text into tokens, in files that training maps into memory and nanoGPT reads",
		Long: `Turn a text into tokens: train.bin and val.bin, little-endian numbers of 16 bits as nanoGPT reads them, and meta.json, which
describes them. IN is a .txt file, or a folder of them; those in a subfolder have its name as their class.

The first 90% of the characters are the training text, unless the folder has the files train.txt and val.txt. With the
tokenizer gpt2 each of several files ends with the token 50256, with a tokenizer.json with its token for the end of a text.`,
		Example: "  fspda data prepare text input.txt --out shakespeare\n  fspda train --data text --data-dir " +
			"shakespeare " +
			"--model gpt-nano",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return command.UsageErrorf("no --out given: name the folder that the files go to")
			}
			m, err := text.Prepare(args[0], tokenizer, out)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s training and %s validation tokens of %s, vocabulary %s\n"+
				"train on it: fspda train --data text --data-dir %s --model gpt-nano\n", out,
				command.Thousands(uint64(m.Train.Tokens)), command.Thousands(uint64(m.Val.Tokens)), m.Name,
				command.Thousands(uint64(m.Vocabulary)), out)
			return err
		},
	}
	cmd.Flags().
		StringVar(&tokenizer, "tokenizer", "char", "char (the characters of the text), byte, gpt2 (the byte "+
			"pairs of GPT-2), or the path of a tokenizer.json of Hugging Face")
	cmd.Flags().StringVar(&out, "out", "", "folder of the files")
	return cmd
}
