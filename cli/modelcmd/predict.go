package modelcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/train/config"
)

func newPredict() *cobra.Command {
	var f targetFlags
	var asJSON bool
	var top int
	cmd := &cobra.Command{
		Use:   "predict WEIGHTS|RUN [IMAGE...]",
		Short: "Predict the classes of images, or of the examples of a data set",
		Long: `Print the most probable classes of each image, or without images of each example of a data set, one line an example:
its name or number, its label if it has one, and classes with their probabilities. With --every-agent each model has a
line. Image files are scaled and normalised as those of the data sets imagenet and folder.`,
		Example: `  fspda predict runs/fspda-sa-folder-1 cat.jpg dog.png
  fspda predict runs/fspda-sa-cifar10-1 --split train --json > predictions.jsonl
  fspda predict resnet50.safetensors --model resnet50 --data imagenet cat.jpg`,
		Args: command.Arguments(1, 1<<20, "a run folder or file of weights, and images"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if top < 1 {
				return command.UsageErrorf("--top %d: expected at least 1", top)
			}
			t, err := f.open(cmd, args[0], args[1:])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, t.close()) }()
			if t.engine.Tokens() {
				return config.Invalid("model", t.Network, "a language model predicts no classes: fspda sample lets "+
					"it write, fspda eval measures it")
			}
			var failed error
			err = t.predict(cmd.Context(), func(model, example int, label int32, p []float64) {
				if failed == nil {
					failed = t.print(cmd.OutOrStdout(), asJSON, t.prediction(model, example, label, p, top))
				}
			})
			return errors.Join(err, failed)
		},
	}
	f.define(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object of JSON a line")
	cmd.Flags().IntVar(&top, "top", 5, "classes of an example")
	return command.CompleteRuns(cmd)
}

// prediction is a line of fspda predict.
type prediction struct {
	Model   string       `json:"model"`
	Example any          `json:"example"` // the number of an example of the data set, or the name of a file
	Label   *int32       `json:"label,omitempty"`
	Top     []likelihood `json:"top"` // most probable first
}

type likelihood struct {
	Class       int     `json:"class"`
	Name        string  `json:"name,omitempty"`
	Probability float64 `json:"probability"`
}

func (t *target) prediction(model, example int, label int32, p []float64, top int) prediction {
	r := prediction{Model: t.models[model].of, Example: example, Label: &label}
	if len(t.files) > 0 {
		r.Example, r.Label = t.files[example], nil
	}
	for c, v := range p {
		l := likelihood{Class: c, Probability: v}
		if c < len(t.names) {
			l.Name = t.names[c]
		}
		r.Top = append(r.Top, l)
	}
	slices.SortStableFunc(r.Top, func(a, b likelihood) int {
		switch {
		case a.Probability > b.Probability:
			return -1
		case a.Probability < b.Probability:
			return 1
		}
		return 0
	})
	r.Top = r.Top[:min(top, len(r.Top))]
	return r
}

func (t *target) print(w io.Writer, asJSON bool, r prediction) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	line := fmt.Sprint(r.Example)
	if len(t.models) > 1 {
		line += "  " + r.Model
	}
	if r.Label != nil {
		line += "  label " + className(t.names, int(*r.Label))
	}
	for _, l := range r.Top {
		line += fmt.Sprintf("  %s: %.4f", className(t.names, l.Class), l.Probability)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
