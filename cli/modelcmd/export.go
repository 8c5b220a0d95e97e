package modelcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cli/weights"
	"fspda/data/text/gpt2"
	"fspda/model"
	"fspda/train"
)

type exportFlags struct {
	choice
	format string
	out    string
}

// choice says which model of a run is meant: the mean if nothing is set.
type choice struct {
	agent int // number of an agent; -1: none
	best  bool
}

func (f *choice) define(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.agent, "agent", -1, "take this agent's model, counted from 0, in place of the mean")
	cmd.Flags().BoolVar(&f.best, "best", false, "take the mean model of the row with the best test accuracy")
}

func newExport() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a model of a run for other programs",
		Long: `Write the mean model of a run, or an agent's, to a file with the names and shapes of torchvision: safetensors, which
PyTorch's load_state_dict takes strictly and fspda train --init starts from; onnx, the whole network, which ONNX
Runtime and others predict with; or hf, for Hugging Face's libraries.

An ONNX model takes float32 "input", batch × channels × height × width of any size (mlp: batch × inputs), normalised
as in training, and gives "logits". That of a language model takes int64 "input", batch × block tokens, and gives
logits of the token after each. The format hf is a folder of config.json and model.safetensors for language
models, which transformers loads (AutoModelForCausalLM), and for ResNet-18 to 152, which timm (local-dir:FOLDER) and
transformers (AutoModelForImageClassification, which takes it from timm) load.

An earlier export is replaced; any other file is not. The model is that of the newest checkpoint. With batch norm the
mean model has the statistics that its last row was measured with, or before the end those pooled from the agents.`,
		Example: `  fspda export runs/fspda-sa-cifar10-1
  fspda export runs/fspda-sa-cifar10-1 --best --out best.safetensors
  fspda export runs/fspda-sa-cifar10-1 --agent 3
  fspda export runs/fspda-sa-cifar10-1 --format onnx
  fspda export runs/fspda-sa-folder-1 --format hf --out my-resnet`,
		Args: command.Arguments(1, 1, "one run folder"),
	}
	cmd.Flags().StringVar(&f.format, "format", "safetensors",
		"safetensors, onnx, or hf: a folder that timm and transformers load")
	f.choice.define(cmd)
	cmd.Flags().StringVar(&f.out, "out", "",
		"file, or folder for hf; the default is RUN/mean.safetensors, agentI.safetensors or best.safetensors, with "+
			".onnx or .hf "+
			"for these formats")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return export(args[0], f, cmd.OutOrStdout())
	}
	return command.CompleteRuns(cmd)
}

// exported is a model to write to a file.
type exported struct {
	of        string // "mean", "agent3", "best"
	iteration int
	batches   int // batches that its batch norm has seen
	x, norms  []float32
}

func export(run string, f exportFlags, stdout io.Writer) (err error) {
	if !slices.Contains([]string{"safetensors", "onnx", "hf"}, f.format) {
		return command.UsageErrorf("format %q: expected safetensors, onnx or hf", f.format)
	}
	if st, err := os.Stat(run); err == nil && !st.IsDir() {
		return command.UsageErrorf("%s is a file: expected the folder of a run, which fspda train writes", run)
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
	e, err := f.pick(run, saved, net)
	if err != nil {
		return err
	}
	f.out = cmp.Or(f.out, filepath.Join(run, e.of+"."+f.format))
	if err := f.checkOut(); err != nil {
		return err
	}
	e.batches = saved.Batches + e.iteration
	meta := weights.Metadata(run, e.of, e.iteration, net, saved.Config)
	weights.AddClasses(meta, saved.ClassNames)
	tensors, err := e.save(f, saved, net, meta)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s of iteration %s, %d tensors, %s parameters\n", f.out, e.of,
		command.Thousands(uint64(e.iteration)), tensors, command.Thousands(uint64(net.Dim())))
	return err
}

// weightFiles are the extensions of files of weights.
var weightFiles = []string{".safetensors", ".onnx", ".pth", ".pt", ".bin", ".ckpt", ".h5", ".npz"}

// checkOut refuses a name with the extension of another format, and refuses to replace a file that
// export did not write.
func (f *exportFlags) checkOut() error {
	if ext := strings.ToLower(filepath.Ext(f.out)); ext != "."+f.format && slices.Contains(weightFiles, ext) {
		return command.UsageErrorf("--out %s: the format is %s, which %s does not say: give the path another "+
			"extension, or choose another --format", f.out, f.format, ext)
	}
	files := []string{f.out}
	if f.format == "hf" { // config.json is written with model.safetensors
		files = []string{filepath.Join(f.out, "model.safetensors"), filepath.Join(f.out, "config.json")}
	}
	for _, path := range files {
		if _, err := os.Lstat(path); err == nil && !weights.Exported(files[0]) {
			return command.UsageErrorf("--out %s: %s exists, and fspda export did not write it: choose another path, "+
				"or remove it", f.out, path)
		}
	}
	return nil
}

// pick reads the requested model.
func (f choice) pick(run string, saved *train.Saved, net *model.Network) (e exported, err error) {
	e.iteration = saved.Iteration
	switch {
	case f.agent < -1:
		return e, command.UsageErrorf("--agent %d: expected the number of an agent, from 0 on", f.agent)
	case f.best && f.agent >= 0:
		return e, command.UsageErrorf("--best is of the mean model: leave --agent out")
	case f.best:
		b, err := train.ReadBest(run)
		if errors.Is(err, os.ErrNotExist) {
			return e, &train.FolderError{Path: run,
				Got: "has no best model yet: it comes with the first evaluation after the start"}
		} else if err != nil {
			return e, err
		}
		e.of, e.iteration, e.x, e.norms = "best", b.Row.Iteration, b.Mean, b.Buffers
	case f.agent >= 0:
		e.of = fmt.Sprintf("agent%d", f.agent)
		e.x, e.norms, err = saved.Agent(f.agent)
	default:
		e.of = "mean"
		var sizes []int
		for _, t := range net.Buffers().Tensors() {
			sizes = append(sizes, t.Size)
		}
		e.x, e.norms, err = saved.Mean(sizes)
	}
	if err == nil && (len(e.x) != net.Dim() || len(e.norms) != net.Buffers().Dim()) {
		err = &train.CheckpointError{Path: run, Got: fmt.Sprintf("its model has %d parameters and %d buffers, %s "+
			"has %d and %d", len(e.x), len(e.norms), net.Name(), net.Dim(), net.Buffers().Dim())}
	}
	return e, err
}

func (e exported) save(f exportFlags, saved *train.Saved, net *model.Network, meta map[string]string) (tensors int,
	err error) {
	if f.format == "hf" && net.Tokens() {
		sizes, _ := model.NamedTransformer(saved.Config.Model, setup.Transformer(saved.Config))
		end := -1
		if net.Classes() == gpt2.Size {
			end = gpt2.EndOfText
		}
		return weights.SaveLanguageModel(f.out, sizes, net, e.x, end, meta)
	}
	if f.format == "onnx" {
		return len(net.Layout().Tensors()) + len(net.Buffers().Tensors()), weights.SaveONNX(f.out, net, e.x, e.norms,
			meta)
	}
	ts := weights.Tensors(net, e.x, e.norms, e.batches)
	if f.format == "hf" {
		if len(saved.PixelMean) == 0 {
			return 0, &train.FolderError{Path: f.out, Got: "cannot be written: the checkpoint, of an older version, " +
				"does not say how pixels were normalised",
				Hint: "resume the run for a moment: its next checkpoint does"}
		}
		return len(ts), weights.SaveHuggingFace(f.out, saved.Config.Model, net, ts, preprocessing(saved), meta)
	}
	return len(ts), weights.Save(f.out, ts, meta)
}

// preprocessing returns the preparation of the images of a run for evaluation.
func preprocessing(s *train.Saved) weights.Preprocessing {
	p := weights.Preprocessing{Mean: s.PixelMean, Std: s.PixelStd, Crop: 1}
	if c := s.Config; slices.Contains([]string{"imagenet", "folder", "synthetic-images"}, c.Data) {
		side := float64(s.Shape[0])
		p.Crop = side / cmp.Or(float64(c.ImageSize), math.Floor((8*side+3)/7))
	}
	return p
}
