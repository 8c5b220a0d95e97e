package setup

import (
	"sync"
	"time"

	"fspda/device"
	"fspda/model"
	"fspda/model/external"
	"fspda/train"
	"fspda/train/config"
)

// programs are the programs of external models that this process has started. Runs of one command
// share its clients, which end with the process.
var programs = struct {
	sync.Mutex
	open map[external.Options]*external.Program
}{open: map[external.Options]*external.Program{}}

// programOf returns the program that a configuration names.
func programOf(c train.Config) *external.Program {
	o := external.Options{Command: c.Command, Clients: c.Clients,
		Timeout: time.Duration(c.ClientTimeout * float64(time.Second))}
	programs.Lock()
	defer programs.Unlock()
	if programs.open[o] == nil {
		programs.open[o] = external.New(o)
	}
	return programs.open[o]
}

// CloseClients ends the clients of external models that this process has started.
func CloseClients() {
	programs.Lock()
	defer programs.Unlock()
	for _, p := range programs.open {
		p.Close()
	}
}

// externalEngine runs an external network on a device.
func externalEngine(c train.Config, net *model.Network, d external.Description, e external.Examples,
	dev device.Device) (*external.Engine, error) {
	if dev.Features().Host == nil {
		return nil, config.Invalid("device", c.Device, "the vectors of an external model are in the memory of the "+
			"host, and its program computes where it likes: use cpu")
	}
	return external.NewEngine(net, programOf(c), d, e, dev), nil
}
