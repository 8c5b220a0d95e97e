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
	"fspda/train/memory"
)

// A GPU has a memory of its own, whose use is forecast.
var _ memory.Device = (*cuda.Device)(nil)

// Devices are the devices of a run: the embedded first one and others of its kind.
type Devices struct {
	device.Device
	others []device.Device // agents are spread over all of them
	note   string          // GPU model, or why auto took the CPU; may be empty
	close  func() error
}

// Workers returns the other devices, each with the network of m.
func (e *Devices) Workers(m *model.Engine) []train.Replica {
	var all []train.Replica
	for _, d := range e.others {
		all = append(all, train.Replica{Device: d, Model: m.On(d)})
	}
	return all
}

// Close waits for the work of the devices and releases them.
func (e *Devices) Close() error { return e.close() }

// OpenDevice opens the device that a configuration names, or the first of several: see OpenDevices.
func OpenDevice(c train.Config, threads int) (*Devices, error) { return OpenDevices(c, threads, 1) }

// OpenAgentDevice opens the device for a process of one agent: if the configuration names several
// GPUs, the agent's rank selects one of them.
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

// OpenDevices opens the devices that a configuration names, at most one for each agent. The device
// auto is a usable GPU, or else the CPU with the given number of threads for each Program. It is an
// error if a device given by name cannot be used.
func OpenDevices(c train.Config, threads, agents int) (*Devices, error) {
	host := func(why string) *Devices {
		d := cpu.New(cpu.Threads(threads))
		return &Devices{Device: d, note: why, close: d.Close}
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
		cuda.Deterministic(c.Deterministic))
	var precision *cuda.PrecisionError
	switch {
	case errors.As(err, &precision): // the GPU works, and the CPU lacks this precision too
		return nil, &train.ConfigError{Key: "precision", Got: c.Precision, Err: err}
	case err == nil:
		return gpus(all), nil
	case c.Device == "auto":
		return host(firstSentence(err)), nil
	}
	return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err,
		Want: "fspda devices lists what was searched and where; --device cpu uses no GPU"}
}

// gpus returns the devices of one or several GPUs.
func gpus(all []*cuda.Device) *Devices {
	e := &Devices{Device: all[0], note: all[0].Properties().Name}
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
		e.note = fmt.Sprintf("%s, and %d more", e.note, len(all)-1)
	}
	return e
}

// firstSentence returns an error without the advice that follows its first colon.
func firstSentence(err error) string {
	text := strings.TrimPrefix(err.Error(), "cuda: ")
	text, _, _ = strings.Cut(text, ": ")
	return text
}

// String names the first device and its note.
func (e *Devices) String() string {
	if e.note == "" {
		return e.Name()
	}
	return fmt.Sprintf("%s (%s)", e.Name(), e.note)
}

// DeviceCache holds the devices of several runs: each is opened once. It is safe for concurrent
// use.
type DeviceCache struct {
	mu   sync.Mutex
	open map[string]*Devices
}

// Get returns the device of a configuration. Nothing closes it.
func (s *DeviceCache) Get(c train.Config) (*Devices, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(c.Device, " ", c.Precision, " ", c.Deterministic)
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
