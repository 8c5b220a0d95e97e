package setup

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"fspda/cpu"
	"fspda/cuda"
	"fspda/device"
	"fspda/model"
	"fspda/train"
)

// Devices is what a run computes on.
type Devices struct {
	device.Device
	others []device.Device // more of its kind, over which agents are spread
	why    string          // it is this one and not another; empty where it was asked for
	close  func() error
}

// places are the other devices, each with the network of m.
func (e *Devices) Workers(m *model.Engine) []train.Place {
	var all []train.Place
	for _, d := range e.others {
		all = append(all, train.Place{Device: d, Model: m.On(d)})
	}
	return all
}

// Close ends what the device has begun.
func (e *Devices) Close() error { return e.close() }

// OpenDevice opens the device that a configuration names, the first of several. With auto that is a
// GPU where one can be used, and else the host, with so many threads for each Program; what was
// asked for by name and is not there is an error.
func OpenDevice(c train.Config, threads int) (*Devices, error) { return OpenDevices(c, threads, 1) }

// OpenAgentDevice is openEngine for a process of one agent, which takes one of several GPUs by its
// rank.
func OpenAgentDevice(c train.Config, threads, rank int) (*Devices, error) {
	indices, err := cuda.ParseNames(c.Device)
	if err == nil && indices == nil {
		if n, err := cuda.Count(); err == nil {
			c.Device = fmt.Sprintf("cuda:%d", rank%n)
		}
	} else if err == nil {
		c.Device = fmt.Sprintf("cuda:%d", indices[rank%len(indices)])
	}
	return OpenDevice(c, threads)
}

// OpenDevices is openEngine that opens several, for so many agents.
func OpenDevices(c train.Config, threads, agents int) (*Devices, error) {
	host := func(why string) *Devices {
		d := cpu.New(cpu.Threads(threads))
		return &Devices{Device: d, why: why, close: d.Close}
	}
	if c.Device == "cpu" {
		return host(""), nil
	}
	indices := []int{0}
	if c.Device != "auto" {
		var err error
		if indices, err = cuda.ParseNames(c.Device); err != nil {
			return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err}
		}
	}
	all, err := cuda.OpenSeveral(indices, agents, cuda.WithPrecision(cuda.Precision(c.Precision)),
		cuda.Deterministic(c.Repeats))
	var precision *cuda.PrecisionError
	switch {
	case errors.As(err, &precision): // the GPU is there, and the host would not do what was asked for either
		return nil, &train.ConfigError{Key: "precision", Got: c.Precision, Err: err}
	case err == nil:
		return gpus(all), nil
	case c.Device == "auto":
		return host(firstSentence(err)), nil
	}
	return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err,
		Want: "fspda devices tells what was looked for and where; --device cpu does without"}
}

// gpus is an engine of one GPU or several.
func gpus(all []*cuda.Device) *Devices {
	e := &Devices{Device: all[0], why: all[0].Properties().Name}
	e.close = func() error {
		var errs []error
		for _, d := range all {
			errs = append(errs, d.Close())
		}
		return errors.Join(errs...)
	}
	for _, d := range all[1:] {
		e.others = append(e.others, d)
	}
	if len(all) > 1 {
		e.why = fmt.Sprintf("%s, and %d more", e.why, len(all)-1)
	}
	return e
}

// firstSentence is what an error says before it goes on about what to do.
func firstSentence(err error) string {
	text := strings.TrimPrefix(err.Error(), "cuda: ")
	text, _, _ = strings.Cut(text, ": ")
	return text
}

// String tells of the engine in a few words.
func (e *Devices) String() string {
	if e.why == "" {
		return e.Name()
	}
	return fmt.Sprintf("%s (%s)", e.Name(), e.why)
}

// DeviceCache are those of several runs: each device is opened once.
type DeviceCache struct {
	mu   sync.Mutex
	open map[string]*Devices
}

func (s *DeviceCache) Get(c train.Config) (*Devices, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(c.Device, " ", c.Precision, " ", c.Repeats)
	if e := s.open[key]; e != nil {
		return e, nil
	}
	e, err := OpenDevice(c, 1)
	if err != nil {
		return nil, err
	}
	if s.open == nil {
		s.open = map[string]*Devices{}
	}
	s.open[key] = e
	return e, nil
}
