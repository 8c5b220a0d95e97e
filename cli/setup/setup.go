package setup

import (
	"fspda/cli/weights"
	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"runtime"
)

// syntheticSeed fixes the built-in data set, so that runs of different seeds train on the same
// data.
const syntheticSeed = 1

// AgentThreads is on how many cores an agent computes: one where there are as many agents as cores,
// else an equal share of all.
func AgentThreads(c train.Config) int {
	cores := c.Threads
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	return max(1, cores/c.Agents)
}

// Prepare loads the data and resolves the configuration. It writes nothing.
func Prepare(c train.Config, dev *Devices) (*train.Setup, *model.Engine, error) {
	set, err := OpenData(c)
	if err != nil {
		return nil, nil, err
	}
	return Resolve(c, set, dev)
}

// OpenData opens the data set that c names. Since that may take long, it checks the name of the
// network first.
func OpenData(c train.Config) (*data.Set, error) {
	if err := checkModel(c); err != nil {
		return nil, err
	}
	set, err := data.Open(c.Data, data.OpenOptions{Dir: c.DataDir, TrainSize: c.DataTrain, TestSize: c.DataTest,
		Seed:    syntheticSeed,
		Augment: data.Augment(c.Augment), Crop: c.Crop, ImageSize: c.ImageSize, JPEG: data.Decoder(
			c.JPEG), OnBad: data.OnBad(c.OnBad), Workers: c.Threads})
	if err != nil {
		return nil, &train.ConfigError{Key: "data", Got: c.Data, Err: err}
	}
	return set, nil
}

// Resolve makes the network and resolves the configuration on a data set.
func Resolve(c train.Config, set *data.Set, dev *Devices) (*train.Setup, *model.Engine, error) {
	s, m, err := ResolveAgent(c, set, dev.Device)
	if err != nil {
		return nil, nil, err
	}
	return s, m, s.CheckMemory(append([]train.Place{{Device: dev.Device, Model: m}}, dev.Workers(m)...)...)
}

// ResolveAgent is resolve for a process of one agent, which does not need the memory of all.
func ResolveAgent(c train.Config, set *data.Set, dev device.Device) (*train.Setup, *model.Engine, error) {
	net, err := OpenModel(c, set.Shape, set.Classes)
	if err != nil {
		return nil, nil, err
	}
	m := model.NewEngine(net, dev)
	if c.Start != "" {
		x, buffers, err := weights.Read(c.Start, net)
		if err != nil {
			return nil, nil, err
		}
		m.StartFrom(x, buffers)
	}
	s, err := c.Resolve(set, m)
	if err != nil {
		return nil, nil, err
	}
	return s, m, nil
}
