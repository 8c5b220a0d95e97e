package setup

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"fspda/cpu"
	_ "fspda/cuda" // registers GPUs
	"fspda/device"
	"fspda/model"
	"fspda/model/external"
	"fspda/train"
)

// Devices are the devices of a run: the embedded first one and others of its kind.
type Devices struct {
	device.Device
	others []device.Device // agents are spread over all of them
	note   string          // GPU model, or why auto took the CPU; may be empty
	close  func() error
}

// Workers returns the other devices, each with the network of m. An external model has none.
func (e *Devices) Workers(m Model) []train.Replica {
	var all []train.Replica
	for _, d := range e.others {
		all = append(all, train.Replica{Device: d, Model: m.(*model.Engine).On(d)})
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
	kind, indices, err := device.ParseName(c.Device)
	if err == nil && kind.Count != nil && indices == nil {
		if n, err := kind.Count(); err == nil {
			c.Device = fmt.Sprintf("%s:%d", kind.Name, rank%n)
		}
	} else if err == nil && indices != nil {
		c.Device = fmt.Sprintf("%s:%d", kind.Name, indices[rank%len(indices)])
	}
	return OpenDevice(c, threads)
}

// OpenDevices opens the devices that a configuration names, at most one for each agent. The device
// auto is a usable GPU, or else the CPU with the given number of threads for each Program. It is an
// error if a device given by name cannot be used.
func OpenDevices(c train.Config, threads, agents int) (*Devices, error) {
	o := device.Options{Threads: threads, Precision: c.Precision, Deterministic: c.Deterministic}
	if c.Model == model.ExternalName {
		o.Memory = external.Memory
		if c.Device == "auto" {
			c.Device = "cpu"
		}
	}
	if c.Device == "auto" {
		return openAny(o, agents)
	}
	kind, indices, err := device.ParseName(c.Device)
	if err != nil {
		return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err}
	}
	all, err := kind.OpenSeveral(indices, agents, o)
	if err == nil {
		return devices(all), nil
	}
	if _, ok := errors.AsType[device.PrecisionError](err); ok {
		return nil, &train.ConfigError{Key: "precision", Got: c.Precision, Err: err}
	}
	return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err,
		Want: "fspda devices lists what was searched and where; --device cpu uses no GPU"}
}

// openAny opens the first usable device with a memory of its own, or else the host's.
func openAny(o device.Options, agents int) (*Devices, error) {
	var host device.Platform
	why := ""
	for _, kind := range device.Platforms() {
		if kind.Count == nil {
			host = kind
			continue
		}
		all, err := kind.OpenSeveral([]int{0}, agents, o)
		if err == nil {
			return devices(all), nil
		}
		if _, ok := errors.AsType[device.PrecisionError](err); ok { // the GPU works, and the CPU lacks it too
			return nil, &train.ConfigError{Key: "precision", Got: o.Precision, Err: err}
		}
		why = firstSentence(strings.TrimPrefix(err.Error(), kind.Name+": "))
	}
	all, err := host.OpenSeveral(nil, agents, o)
	if err != nil {
		return nil, err
	}
	e := devices(all)
	e.note = why
	return e, nil
}

// devices returns the devices of one or several GPUs, or the host.
func devices(all []device.Opened) *Devices {
	e := &Devices{Device: all[0], note: all[0].Model()}
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
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, ": ")
	return text
}

// BF16Sums names the order of sums in bf16: runs on several machines do not mix two.
func (e *Devices) BF16Sums() string {
	if _, ok := e.Device.(*cpu.Device); ok {
		return cpu.BF16Sums()
	}
	return "of a GPU"
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
	key := fmt.Sprint(c.Device, " ", c.Precision, " ", c.Deterministic, " ", c.Model == model.ExternalName)
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
