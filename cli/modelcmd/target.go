package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/setup"
	"fspda/cli/weights"
	"fspda/data"
	"fspda/data/images"
	"fspda/data/text"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/runfolder"
)

// target is the input of eval and predict: models of one network, and examples.
type target struct {
	Network string
	models  []exported
	set     *data.Set
	names   []string // names of the classes; nil: not known
	split   data.Split
	files   []string // files of the examples; nil: the examples of a set
	bad     int      // images that could not be read, and have no prediction
	engine  setup.Model
	dev     *setup.Devices
}

type targetFlags struct {
	choice
	agents bool
	split  string
}

// keys are the keys of the configuration that eval and predict have flags for.
var keys = []string{"data", "data_dir", "data_train", "data_test", "crop", "image_size", "jpeg", "on_bad", "tokenizer",
	"model", "command", "clients", "client_timeout", "hidden", "activation", "layers", "heads", "width", "block",
	"gelu", "bias", "device", "precision", "threads"}

func (f *targetFlags) define(cmd *cobra.Command) {
	c, all := train.Default(), pflag.NewFlagSet("", pflag.ContinueOnError)
	setup.ConfigFlags(all, &c)
	for _, k := range keys {
		cmd.Flags().AddFlag(all.Lookup(setup.FlagName(k)))
	}
	f.choice.define(cmd)
	cmd.Flags().BoolVar(&f.agents, "every-agent", false, "of a run: also the model of every agent, side by side")
	cmd.Flags().StringVar(&f.split, "split", "test", "examples of the data set: test or train")
}

// open reads the models of a run folder or a file of weights, and opens the data. Files are images
// to take in place of a data set.
func (f *targetFlags) open(cmd *cobra.Command, path string, files []string) (t *target, err error) {
	t = &target{files: files}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	st, err := os.Stat(path)
	isRun := err == nil && st.IsDir() && !weights.IsFolder(path)
	var saved *train.Saved
	var names []string
	resumed := ""
	if isRun {
		if saved, err = train.OpenSaved(path); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, saved.Close()) }()
		resumed = path
	} else if f.agents || f.best || f.agent != -1 {
		return t, config.Invalid("every-agent, agent or best", path, "a file holds one model: name the folder of a run")
	}
	c, err := setup.ReadConfig("", resumed, cmd.Flags())
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return t, err
	}
	classes := 0
	if isRun {
		classes, names = saved.Classes, saved.ClassNames
	} else if classes, names, err = weights.Describe(path, &c, cmd.Flags().Changed("model")); err == nil {
		err = c.Check() // keys that the file has
	}
	if err = errors.Join(err, c.RefuseUnused(keys)); err != nil {
		return t, err
	}
	if err = t.openData(c, f.split, classes, cmd.ErrOrStderr()); err == nil {
		err = t.nameClasses(c.Data, names)
	}
	if err == nil && isRun {
		err = t.checkTokens(path, c.Data)
	}
	if err != nil {
		return t, err
	}
	c.Agents = 1 // all cores for one program
	if t.dev, err = setup.OpenDevice(c, setup.AgentThreads(c)); err != nil {
		return t, err
	}
	net, m, err := setup.OpenEngine(c, t.set, t.dev.Device)
	if err != nil {
		return t, err
	}
	t.Network, t.engine = net.Name(), m
	if !isRun {
		return t, t.openFile(path, net, c)
	}
	return t, t.openModels(path, saved, net, f)
}

func (t *target) openFile(path string, net *model.Network, c train.Config) error {
	o := weights.Options{Key: "weights"}
	o.Sizes, _ = model.NamedTransformer(c.Model, setup.Transformer(c))
	w, err := weights.Read(path, net, o)
	t.models = []exported{{of: path, x: w.X, norms: w.Buffers}}
	return err
}

func (t *target) openModels(run string, saved *train.Saved, net *model.Network, f *targetFlags) error {
	first, err := f.pick(run, saved, net)
	if err != nil {
		return err
	}
	t.models = append(t.models, first)
	for i := 0; f.agents && i < saved.Agents; i++ {
		e, err := choice{agent: i}.pick(run, saved, net)
		if err != nil {
			return err
		}
		t.models = append(t.models, e)
	}
	return nil
}

// openData opens the data set, or the files as examples of a class that is not known.
func (t *target) openData(c train.Config, split string, classes int, stderr io.Writer) (err error) {
	if len(t.files) == 0 {
		if t.set, err = setup.OpenData(c); err != nil {
			return err
		}
		t.describe(stderr)
		if classes != 0 && classes != t.set.Classes {
			what := "classes"
			if t.set.Text != nil {
				what = "tokens"
			}
			return config.Invalid("data", c.Data,
				"it has %d %s, the model %d: give the data set that it was trained on",
				t.set.Classes, what, classes)
		}
		t.split = map[string]data.Split{"test": t.set.Test, "train": t.set.Train}[split]
		if t.split.Len() == 0 {
			return config.Invalid("split", split, "expected test or train, with examples")
		}
		return nil
	}
	if c.Data != "imagenet" && c.Data != "folder" {
		return config.Invalid("data", c.Data,
			"image files are scaled and normalised as those of imagenet and folder: name "+
				"one of them with --data if the model was trained so, or give --data and --data-dir without files")
	}
	source := imageFiles(t.files)
	t.set, err = data.FromImages("files", max(classes, 2), source, source, data.ImageOptions{Crop: c.Crop,
		ImageSize: c.ImageSize, JPEG: data.Decoder(c.JPEG), OnBad: data.OnBad(c.OnBad), Workers: c.Threads})
	if err == nil {
		t.set.OnSkip(func(err error) { fmt.Fprintf(stderr, "skipped an image: %v\n", err) })
		t.split = t.set.Test
	}
	return err
}

// nameClasses sets the names of the classes: the model's, or the data set's if the model has none.
// It refuses a set whose labels mean other classes by their names.
func (t *target) nameClasses(name string, of []string) error {
	own := t.set.ClassNames
	if t.names = of; len(of) != t.set.Classes || isCount(of) && len(own) == len(of) {
		t.names = own
	}
	if len(t.files) > 0 || len(own) != len(of) || isCount(own) || isCount(of) {
		return nil
	}
	for i := range own {
		if own[i] != of[i] {
			return config.Invalid("data", name, "its class %d is %q, that of the model %q, so that its labels mean "+
				"other classes: give a data set with the classes that it was trained on", i, own[i], of[i])
		}
	}
	return nil
}

// isCount reports whether names of classes are their numbers.
func isCount(names []string) bool {
	for i, n := range names {
		if n != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// describe prints the layout of a set of images to the error output, and the images that are left
// out.
func (t *target) describe(stderr io.Writer) {
	t.set.OnSkip(func(err error) { fmt.Fprintf(stderr, "skipped an image: %v\n", err) })
	if t.set.Layout == "" {
		return
	}
	fmt.Fprintln(stderr, t.set.Describe())
	for _, note := range t.set.Notes {
		fmt.Fprintf(stderr, "note: %s\n", note)
	}
}

// checkTokens refuses a text whose tokens mean other characters than the tokens of the run.
func (t *target) checkTokens(run, name string) error {
	if t.set.Text == nil || t.set.Text.Tokenizer == nil {
		return nil
	}
	trained, err := text.ReadTokenizer(run, runfolder.TokenizerFile)
	if errors.Is(err, fs.ErrNotExist) { // the run has no tokenizer to compare with
		return nil
	}
	if err == nil && !text.Same(trained, t.set.Text.Tokenizer) {
		err = config.Invalid("data", name, "its tokens stand for other characters than those of %s: give a text with "+
			"the same characters, or train with a tokenizer that knows every text (byte, gpt2)", run)
	}
	return err
}

func (t *target) close() (err error) {
	if t.set != nil {
		err = t.set.Close()
	}
	if t.dev != nil {
		err = errors.Join(err, t.dev.Close())
	}
	return err
}

// imageFiles are image files as a source without labels.
type imageFiles []string

func (f imageFiles) Len() int          { return len(f) }
func (imageFiles) Label(int) int32     { return 0 }
func (f imageFiles) Name(i int) string { return f[i] }
func (imageFiles) Bytes(int) int64     { return -1 }

// cannotRead reports a file that is no image, or cannot be read.
func (f imageFiles) cannotRead(i int, err error) error {
	return config.Invalid("image", f[i], "cannot be read: %v: name files of images", err)
}

func (f imageFiles) Image(dst *images.RGB, i int) error {
	text, err := os.ReadFile(f[i])
	if err == nil {
		err = images.Decode(dst, text, 0)
	}
	if err != nil {
		return f.cannotRead(i, err)
	}
	return nil
}

func (f imageFiles) Encoded(_ []byte, i int) ([]byte, error) {
	text, err := os.ReadFile(f[i])
	if err != nil {
		return nil, f.cannotRead(i, err)
	}
	return text, nil
}

// batchFeatures bounds the size of a batch: 27 images of 224×224.
const batchFeatures = 1 << 22

// predict calls see with the probabilities of each example by each model, in the order of the
// examples. They are valid during the call.
func (t *target) predict(ctx context.Context, see func(model, example int, label int32, p []float64)) error {
	net := t.engine
	type loaded struct{ x, buffers device.Vector }
	var all []loaded
	for _, m := range t.models {
		l := loaded{t.dev.NewVector(len(m.x)), t.dev.NewVector(len(m.norms))}
		t.dev.Write(l.x, m.x)
		t.dev.Write(l.buffers, m.norms)
		all = append(all, l)
	}
	size := max(1, min(256, batchFeatures/t.set.Features()))
	var b device.Batch
	out := make([]float64, size*net.Classes())
	for from := 0; from < t.split.Len(); from += size {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := t.split.Batch(&b, from, min(from+size, t.split.Len())); err != nil {
			return err
		}
		out := out[:b.N()*net.Classes()]
		for k, l := range all {
			if err := t.engine.Predict(out, l.x, l.buffers, b); err != nil {
				return err
			}
			for i := range b.N() {
				if t.split.Bad(from + i) { // another image is in its place
					if k == 0 {
						t.bad++
					}
					continue
				}
				p := out[i*net.Classes() : (i+1)*net.Classes()]
				if softmax(p); math.IsNaN(p[0]) {
					return fmt.Errorf("the model of %s computes scores that are no numbers, for example %d: it "+
						"diverged, take earlier weights", t.models[k].of, from+i)
				}
				see(k, from+i, b.Y[i], p)
			}
		}
	}
	return nil
}

// softmax replaces logits by probabilities. These are NaN if a logit is NaN or +Inf, or all are
// -Inf.
func softmax(z []float64) {
	largest, sum := slices.Max(z), 0.0
	for i, v := range z {
		z[i] = math.Exp(v - largest)
		sum += z[i]
	}
	for i := range z {
		z[i] /= sum
	}
}
