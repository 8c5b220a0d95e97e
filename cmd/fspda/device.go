package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"fspda/cpu"
	"fspda/cuda"
	"fspda/device"
	"fspda/train"
)

// engine is what a run computes on.
type engine struct {
	device.Device
	why   string // it is this one and not another; empty where it was asked for
	close func() error
}

// Close ends what the device has begun.
func (e *engine) Close() error { return e.close() }

// openEngine opens the device that a configuration names. With auto that is a GPU where one can be used, and else the host, with so many
// threads for each Program; what was asked for by name and is not there is an error.
func openEngine(c train.Config, threads int) (*engine, error) {
	host := func(why string) *engine {
		d := cpu.New(cpu.Threads(threads))
		return &engine{Device: d, why: why, close: d.Close}
	}
	if c.Device == "cpu" {
		return host(""), nil
	}
	index := 0
	if c.Device != "auto" {
		var err error
		if index, err = cuda.ParseName(c.Device); err != nil {
			return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err}
		}
	}
	d, err := cuda.Open(index, cuda.WithPrecision(cuda.Precision(c.Precision)), cuda.Deterministic(c.Repeats))
	var precision *cuda.PrecisionError
	switch {
	case errors.As(err, &precision): // the GPU is there, and the host would not do what was asked for either
		return nil, &train.ConfigError{Key: "precision", Got: c.Precision, Err: err}
	case err == nil:
		return &engine{Device: d, why: d.Properties().Name, close: d.Close}, nil
	case c.Device == "auto":
		return host(firstSentence(err)), nil
	}
	return nil, &train.ConfigError{Key: "device", Got: c.Device, Err: err, Want: "fspda devices tells what was looked for and where; --device cpu does without"}
}

// firstSentence is what an error says before it goes on about what to do.
func firstSentence(err error) string {
	text := strings.TrimPrefix(err.Error(), "cuda: ")
	text, _, _ = strings.Cut(text, ": ")
	return text
}

// String tells of the engine in a few words.
func (e *engine) String() string {
	if e.why == "" {
		return e.Name()
	}
	return fmt.Sprintf("%s (%s)", e.Name(), e.why)
}

// engines are those of several runs: each device is opened once.
type engines struct {
	mu   sync.Mutex
	open map[string]*engine
}

func (s *engines) get(c train.Config) (*engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(c.Device, " ", c.Precision, " ", c.Repeats)
	if e := s.open[key]; e != nil {
		return e, nil
	}
	e, err := openEngine(c, 1)
	if err != nil {
		return nil, err
	}
	if s.open == nil {
		s.open = map[string]*engine{}
	}
	s.open[key] = e
	return e, nil
}
