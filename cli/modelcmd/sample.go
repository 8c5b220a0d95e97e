package modelcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data/text"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/generate"
	"fspda/train/runfolder"
)

type sampleFlags struct {
	choice
	prompt  string
	options generate.Options
	samples int
	json    bool
}

// sampleKeys are the keys of the configuration that sample has flags for.
var sampleKeys = []string{"device", "precision", "threads"}

func newSample() *cobra.Command {
	choice := generate.Choice{Temperature: 0.8, TopK: 200}
	f := sampleFlags{options: generate.Options{Choice: choice, Count: 500, Seed: 1}, samples: 1}
	cmd := &cobra.Command{
		Use:   "sample RUN",
		Short: "Let the language model of a run write text",
		Long: `Print text that follows a prompt, as the mean model of a run, or an agent's, draws it, token by token. In the prompt \n is a new
line, \t a tab and \\ a backslash.

A token is drawn from the softmax of its logits over the temperature, among the k largest; temperature 0 takes the
largest. The same seed gives the same text.`,
		Example: `  fspda sample runs/fspda-sa-synthetic-text-1
  fspda sample runs/fspda-sa-text-1 --prompt 'ROMEO:\n' --tokens 1000 --temperature 0.7
  fspda sample runs/fspda-sa-text-1 --agent 3 --samples 5 --json`,
		Args: command.Arguments(1, 1, "one run folder"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	c, all := train.Default(), pflag.NewFlagSet("", pflag.ContinueOnError)
	setup.ConfigFlags(all, &c)
	for _, k := range sampleKeys {
		cmd.Flags().AddFlag(all.Lookup(setup.FlagName(k)))
	}
	f.define(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.prompt, "prompt", `\n`, "text that the sample continues")
	fs.IntVar(&f.options.Count, "tokens", f.options.Count, "tokens to draw")
	fs.Float64Var(&f.options.Temperature, "temperature", f.options.Temperature,
		"divides the logits: below 1 likelier tokens are drawn more often; 0 takes the likeliest")
	fs.IntVar(&f.options.TopK, "top-k", f.options.TopK, "draw among so many likeliest tokens; 0 is all")
	fs.IntVar(&f.samples, "samples", f.samples, "number of texts")
	fs.Uint64Var(&f.options.Seed, "seed", f.options.Seed, "seed of the draws")
	fs.BoolVar(&f.json, "json", false, "print an object of JSON a text")
	return command.CompleteRuns(cmd)
}

// check refuses flags out of range, and flags that have no effect at temperature 0.
func (f *sampleFlags) check(fs *pflag.FlagSet) error {
	if f.options.Temperature == 0 {
		for _, name := range []string{"top-k", "seed", "samples"} {
			if fs.Changed(name) {
				return command.UsageErrorf("--%s has no effect beside --temperature 0, which takes the likeliest "+
					"token: leave one of the two out", name)
			}
		}
	}
	switch err := f.options.Check(); {
	case err != nil:
		return command.UsageErrorf("%v", err)
	case f.prompt == "":
		return command.UsageErrorf(`--prompt is empty: a text begins with at least one character, as in --prompt '\n'`)
	case f.options.Count < 1:
		return command.UsageErrorf("--tokens %d: expected at least 1", f.options.Count)
	case f.samples < 1:
		return command.UsageErrorf("--samples %d: expected at least 1", f.samples)
	}
	return nil
}

func (f *sampleFlags) run(cmd *cobra.Command, run string) (err error) {
	if err := f.check(cmd.Flags()); err != nil {
		return err
	}
	saved, err := train.OpenSaved(run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, saved.Close()) }()
	net, err := setup.OpenModel(saved.Config, saved.Shape, saved.Classes)
	if err != nil {
		return err
	}
	if !net.Tokens() {
		return config.Invalid("model", saved.Config.Model, "it is no language model, which alone writes text: fspda "+
			"predict prints what it predicts")
	}
	tokenizer, err := text.ReadTokenizer(run, runfolder.TokenizerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &train.FolderError{Path: run, Got: "does not say which text its tokens are",
			Hint: "its data were tokens without a known tokenizer: prepare them with fspda data prepare text"}
	} else if err != nil {
		return err
	}
	if tokenizer.Size() != saved.Classes {
		return &train.FolderError{Path: run, Got: fmt.Sprintf("its tokenizer has %d tokens, its model %d",
			tokenizer.Size(), saved.Classes)}
	}
	picked, err := f.pick(run, saved, net)
	if err != nil {
		return err
	}
	c, err := setup.ReadConfig("", run, cmd.Flags())
	if err == nil {
		err = errors.Join(c.Check(), c.RefuseUnused(sampleKeys))
	}
	if err != nil {
		return err
	}
	c.Agents = 1 // all cores for one program
	dev, err := setup.OpenDevice(c, setup.AgentThreads(c))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	x := dev.NewVector(len(picked.x))
	dev.Write(x, picked.x)
	f.options.Vocabulary, f.options.Block = saved.Classes, saved.Shape[0]
	return f.write(cmd.Context(), model.NewEngine(net, dev.Device), x, tokenizer, cmd.OutOrStdout())
}

// write draws the texts and prints them as they come.
func (f *sampleFlags) write(ctx context.Context, m generate.Model, x device.Vector, t text.Tokenizer,
	to io.Writer) error {

	prompt := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(f.prompt)
	tokens, err := t.Encode(nil, []byte(prompt))
	if err != nil {
		return command.UsageErrorf("--prompt %q: %v", prompt, err)
	}
	for k := range f.samples {
		f.options.Sample = uint64(k)
		var kept strings.Builder
		out := to
		if f.json {
			out = &kept
		} else if k > 0 {
			if _, err := fmt.Fprintln(to, "---------------"); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(out, prompt); err != nil {
			return err
		}
		w := text.NewWriter(out, t)
		err := generate.Tokens(ctx, m, x, tokens, f.options, w.Token)
		if err := errors.Join(err, w.Flush()); err != nil {
			return err
		}
		if f.json {
			err = json.NewEncoder(to).Encode(map[string]any{"sample": k, "text": kept.String()})
		} else {
			_, err = fmt.Fprintln(to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
