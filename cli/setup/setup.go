package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"fspda/cli/weights"
	"fspda/cpu"
	"fspda/data"
	_ "fspda/data/text/gpt2" // registers the tokenizer
	"fspda/device"
	"fspda/internal/cgroup"
	"fspda/model"
	"fspda/model/external"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/memory"
)

// syntheticSeed fixes the built-in data set, so that runs of different seeds train on the same
// data.
const syntheticSeed = 1

// AgentThreads returns the number of threads of an agent: an equal share of all cores, at least 1.
func AgentThreads(c train.Config) int {
	cores := cmp.Or(c.Threads, cgroup.Processors())
	return max(1, cores/c.Agents)
}

// Prepare opens the data set and resolves the configuration. It writes no file.
func Prepare(c train.Config, dev *Devices) (*train.Setup, Model, error) {
	set, err := OpenData(c)
	if err != nil {
		return nil, nil, err
	}
	return Resolve(c, set, dev)
}

// DataOptions are the options that OpenData opens the data set with.
func DataOptions(c train.Config) data.OpenOptions {
	o := data.OpenOptions{Dir: c.DataDir, TrainSize: c.DataTrain, TestSize: c.DataTest, Seed: syntheticSeed,
		Augment: data.Augment(c.Augment), Vary: data.Variation{Policy: c.Policy, Erase: c.Erase,
			Repeat: c.Repeat, Mixup: c.Mixup, Cutmix: c.Cutmix}, Crop: c.Crop, ImageSize: c.ImageSize,
		JPEG: data.Decoder(c.JPEG), OnBad: data.OnBad(c.OnBad), Workers: c.Threads,
		ImageColumn: c.ImageColumn, LabelColumn: c.LabelColumn, Tokenizer: c.Tokenizer, Window: c.Window()}
	if c.Data == model.ExternalName {
		o.Command = c.Command
	}
	if c.Block == 0 { // not set
		o.Agents = c.Agents
	}
	return o
}

// open opens the data set that c names: a client has the examples of the set external.
func open(c train.Config) (*data.Set, error) {
	if c.Data != model.ExternalName {
		return data.Open(c.Data, DataOptions(c))
	} else if c.Model != model.ExternalName {
		return nil, fmt.Errorf("the program of an external model has its examples: choose model %s, not %s",
			model.ExternalName, c.Model)
	}
	labels, err := programOf(c).Data()
	if err != nil {
		return nil, err
	}
	return data.Indexed(c.Data, labels)
}

func init() {
	data.Register(model.ExternalName, func(data.OpenOptions) (*data.Set, error) {
		return nil, errors.New("the program of an external model has its examples: OpenData asks it")
	})
}

// OpenData opens the data set that c names.
func OpenData(c train.Config) (*data.Set, error) {
	set, err := open(c)
	if err != nil && c.DataDir != "" && !slices.Contains(c.Explicit(), "data_dir") {
		if _, gone := os.Stat(c.DataDir); errors.Is(gone, fs.ErrNotExist) {
			return nil, &train.ConfigError{Key: "data_dir", Got: c.DataDir, Err: gone, Want: "the run's " +
				"configuration names it: if the data are elsewhere now, give their place with --data-dir"}
		}
	}
	if err != nil {
		return nil, &train.ConfigError{Key: "data", Got: c.Data, Err: err}
	}
	return set, nil
}

// Resolve makes the network, resolves the configuration on a data set, and checks that all agents
// fit into memory.
func Resolve(c train.Config, set *data.Set, dev *Devices) (*train.Setup, Model, error) {
	s, m, err := ResolveAgent(c, set, dev.Device)
	if err != nil {
		return nil, nil, err
	}
	if err := s.CheckOutages(); err != nil {
		return nil, nil, err
	}
	return s, m, memory.Check(s, append([]device.Device{dev.Device}, dev.others...)...)
}

// ResolveAgent is Resolve for a process of one agent, which does not hold the memory of all agents.
func ResolveAgent(c train.Config, set *data.Set, dev device.Device) (*train.Setup, Model, error) {
	var shorter string
	if usual := c.Window(); set.Text != nil && c.Block == 0 && set.Shape[0] < usual {
		c.Block = set.Shape[0]
		shorter = fmt.Sprintf("block is %d: its default %d is longer than the text of an agent, or for validation",
			c.Block, usual)
	}
	net, m, err := OpenEngine(c, set, dev)
	if err != nil {
		return nil, nil, err
	}
	start, err := initialize(c, net, m)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Resolve(set, m)
	if err != nil {
		return nil, nil, err
	}
	s.Batches = start.Batches
	if _, ok := dev.(*cpu.Device); ok && !cpu.Assembly() {
		s.Warnings = append(s.Warnings, slowKernels)
	} else if ok && c.Precision == "bf16" && !cpu.FastBF16() {
		s.Warnings = append(s.Warnings, slowBF16)
	}
	if shorter != "" {
		s.Warnings = append(s.Warnings, shorter)
	}
	return s, m, nil
}

// slowBF16 is the warning for a processor without instructions on bfloat16 numbers.
const slowBF16 = "products in bf16 run as loops in Go, about a hundred times slower than in fp32: this processor " +
	"has neither AVX-512 BF16 nor AMX. Precision fp32 is faster here"

// initialize gives a model the weights that c names, if it names some, and returns them. An
// external model without such is asked for the ones that it draws from the seed.
func initialize(c train.Config, net *model.Network, m Model) (start weights.Weights, err error) {
	other, isExternal := m.(*external.Engine)
	if isExternal && (c.Init == "" || c.Head == config.HeadNew) {
		if err := other.Initialize(c.Seed); err != nil {
			return start, err
		}
	}
	if c.Init == "" {
		return start, nil
	}
	o := weights.Options{}
	o.Sizes, _ = model.NamedTransformer(c.Model, Transformer(c))
	if c.Head == config.HeadNew {
		o.NewHead = m.Init(c.Seed)
	}
	if start, err = weights.Read(c.Init, net, o); err == nil {
		m.StartFrom(start.X, start.Buffers)
	}
	return start, err
}

// slowKernels is the warning for a processor, or a build, without assembly.
const slowKernels = "the kernels run as loops in Go, about a hundred times slower than in assembly, which needs a " +
	"processor with AVX2 and FMA (amd64) or NEON (arm64), and a program that was built without the tags noasm and " +
	"fspda_noasm"
