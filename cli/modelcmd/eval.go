package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/train/config"
)

func newEval() *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "eval WEIGHTS|RUN",
		Short: "Measure a model on a data set: accuracy, top-5, per class, confusion, calibration",
		Long: `Measure the mean model of a run, or with --every-agent every agent's beside it, or a file of weights, on the test examples of
any data set with the same classes. A folder with model.safetensors is such a file too. A run brings its data set and
network; flags replace them.

The loss is the mean cross entropy. The calibration error (ECE) is the mean distance between confidence and accuracy
over 15 equal bins of confidence, weighted by examples. Of a language model it is the loss, perplexity, bits per byte
and accuracy over the windows of the text at multiples of their length. JSON has the bins, and the confusion
table: the examples of
each class, in its row, by predicted class.`,
		Example: `  fspda eval runs/fspda-sa-cifar10-1 --every-agent
  fspda eval runs/fspda-sa-cifar10-1 --best --data folder --data-dir other-pictures
  fspda eval resnet50.safetensors --model resnet50 --data imagenet --data-dir imagenet --json`,
		Args: command.Arguments(1, 1, "one run folder or file of weights"),
	}
	f.define(cmd)
	return command.Report(command.CompleteRuns(cmd), func(ctx context.Context) (_ fmt.Stringer, err error) {
		t, err := f.open(cmd, cmd.Flags().Arg(0), nil)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.close()) }()
		if t.set.Text != nil {
			return t.evalText(ctx, f.split)
		}
		r := &evalReport{Network: t.Network, Data: t.set.Name, Split: f.split, Examples: t.split.Len(),
			Names: t.names}
		for _, m := range t.models {
			r.Models = append(r.Models, newScores(m.of, t.set.Classes))
		}
		if err := t.predict(ctx, func(model, _ int, label int32, p []float64) {
			r.Models[model].add(int(label), p)
		}); err != nil {
			return nil, err
		}
		if r.Examples -= t.bad; r.Examples == 0 {
			return nil, config.Invalid("data", t.set.Name, "none of the %d images can be read", t.bad)
		}
		for _, s := range r.Models {
			s.finish()
		}
		return r, nil
	})
}

type evalReport struct {
	Network  string    `json:"network"`
	Data     string    `json:"data"`
	Split    string    `json:"split"`
	Examples int       `json:"examples"`
	Names    []string  `json:"class_names,omitempty"`
	Models   []*scores `json:"models"`
}

// scores are the results of one model.
type scores struct {
	Model       string     `json:"model"`
	Accuracy    float64    `json:"accuracy"`
	Top5        float64    `json:"top5"`
	Loss        float64    `json:"loss"`              // mean cross entropy
	ECE         float64    `json:"ece"`               // expected calibration error
	PerClass    []*float64 `json:"accuracy_by_class"` // null: no example of the class
	Confusion   [][]int    `json:"confusion"`         // counts by class and predicted class
	Calibration []bin      `json:"calibration"`
}

// bin are the examples whose confidence, the largest probability, is in an interval.
type bin struct {
	Examples   int     `json:"examples"`
	Confidence float64 `json:"confidence"` // mean
	Accuracy   float64 `json:"accuracy"`
}

// bins is the usual number of bins of the calibration error.
const bins = 15

func newScores(model string, classes int) *scores {
	s := &scores{Model: model, Calibration: make([]bin, bins)}
	for range classes {
		s.Confusion = append(s.Confusion, make([]int, classes))
	}
	return s
}

// add counts an example of a class with the given probabilities. Of equal ones the first is larger.
func (s *scores) add(label int, p []float64) {
	best, rank := 0, 0
	for i, v := range p {
		if v > p[best] {
			best = i
		}
		if v > p[label] || v == p[label] && i < label {
			rank++
		}
	}
	s.Confusion[label][best]++
	b := &s.Calibration[min(int(p[best]*bins), bins-1)]
	b.Examples++
	b.Confidence += p[best]
	if best == label {
		s.Accuracy++
		b.Accuracy++
	}
	if rank < 5 {
		s.Top5++
	}
	s.Loss -= math.Log(max(p[label], math.SmallestNonzeroFloat64))
}

// finish turns the sums into means.
func (s *scores) finish() {
	n := 0
	for class, row := range s.Confusion {
		of := 0
		for _, k := range row {
			of += k
		}
		n += of
		var accuracy *float64
		if of > 0 {
			v := float64(row[class]) / float64(of)
			accuracy = &v
		}
		s.PerClass = append(s.PerClass, accuracy)
	}
	for i := range s.Calibration {
		if b := &s.Calibration[i]; b.Examples > 0 {
			s.ECE += math.Abs(b.Accuracy-b.Confidence) / float64(n)
			b.Accuracy /= float64(b.Examples)
			b.Confidence /= float64(b.Examples)
		}
	}
	s.Accuracy, s.Top5, s.Loss = s.Accuracy/float64(n), s.Top5/float64(n), s.Loss/float64(n)
}

// Text shows a table of at most tableClasses classes, of more the worst.
const tableClasses = 20

// String is the report as text: the models side by side, and the classes of the first.
func (r *evalReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s %s examples of %s\n\n", r.Network, command.Thousands(uint64(r.Examples)), r.Split, r.Data)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\taccuracy\ttop-5\tloss\tECE")
	for _, s := range r.Models {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.4g\t%.4g\n", s.Model, command.Percent(s.Accuracy), command.Percent(s.Top5),
			s.Loss, s.ECE)
	}
	first := r.Models[0]
	order := make([]int, 0, len(first.PerClass))
	for i, a := range first.PerClass {
		if a != nil {
			order = append(order, i)
		}
	}
	if len(first.PerClass) > tableClasses {
		slices.SortStableFunc(order,
			func(a, b int) int { return int(math.Copysign(1, *first.PerClass[a]-*first.PerClass[b])) })
		order = order[:min(tableClasses, len(order))]
		fmt.Fprintf(w, "\nthe %d worst classes of %s\n", len(order), first.Model)
	} else {
		fmt.Fprintf(w, "\nclasses of %s\n", first.Model)
	}
	fmt.Fprintln(w, "class\taccuracy\tpredicted as")
	for _, c := range order {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.class(c), command.Percent(*first.PerClass[c]),
			r.predictions(first.Confusion[c]))
	}
	w.Flush() // writing to memory gives no error
	return b.String()
}

func (r *evalReport) class(i int) string { return className(r.Names, i) }

// className is the name of a class, or its number if the name is not known. A number beside the name
// would be taken for one: class 2 of 0 to 11 in the order of texts is 10.
func className(names []string, i int) string {
	if i < len(names) {
		return command.Printable(names[i])
	}
	return strconv.Itoa(i)
}

// predictions lists the most frequent predictions of the examples of a class.
func (r *evalReport) predictions(row []int) string {
	var by []int
	for c, n := range row {
		if n > 0 {
			by = append(by, c)
		}
	}
	slices.SortStableFunc(by, func(a, b int) int { return row[b] - row[a] })
	var all []string
	for _, c := range by[:min(len(by), 5)] {
		all = append(all, fmt.Sprintf("%s: %d", r.class(c), row[c]))
	}
	if len(by) > 5 {
		all = append(all, "…")
	}
	return strings.Join(all, ", ")
}
