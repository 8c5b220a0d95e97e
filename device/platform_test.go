package device_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"fspda/device"
)

// numbered is a device of which nothing but its number is asked.
type numbered struct {
	device.Device
	index  int
	closed *[]int
}

func (numbered) Model() string  { return "test" }
func (n numbered) Close() error { *n.closed = append(*n.closed, n.index); return nil }

// Names choose devices by kind and number, and what was opened before a failure is closed.
func TestPlatforms(t *testing.T) {
	var closed []int
	lost := errors.New("lost")
	device.RegisterPlatform(device.Platform{Name: "test", Count: func() (int, error) { return 3, nil },
		Open: func(index int, o device.Options) (device.Opened, error) {
			if index > 3 || o.Precision != "fp32" {
				return nil, lost
			}
			return numbered{index: index, closed: &closed}, nil
		},
		Lost: func(err error) bool { return errors.Is(err, lost) }})
	for name, want := range map[string]string{"test": "0 1", "test:2": "2", "test:3,1": "3 1", "test:": "error",
		"test:0,0": "error", "test:x": "error", "other": "error", "test:1,9": "error"} {
		got := ""
		k, indices, err := device.ParseName(name)
		if err == nil {
			var all []device.Opened
			all, err = k.OpenSeveral(indices, 2, device.Options{Precision: "fp32"})
			for _, d := range all {
				got += fmt.Sprint(" ", d.(numbered).index)
			}
		}
		if err != nil {
			got = " error"
		}
		if got != " "+want {
			t.Errorf("%s:%s, %v; want %s", name, got, err, want)
		}
	}
	if !slices.Equal(closed, []int{1}) {
		t.Errorf("closed %v, want the first of test:1,9", closed)
	}
	if !device.Lost(fmt.Errorf("step: %w", lost)) || device.Lost(errors.New("other")) {
		t.Error("a lost device is not told from other errors")
	}
}
