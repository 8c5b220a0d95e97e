package train

import (
	"go.uber.org/zap"

	"fspda/device"
	"fspda/train/memory"
)

// devicesOf lists the devices of all workers.
func devicesOf(replicas []Replica) (all []device.Device) {
	for _, p := range replicas {
		all = append(all, p.Device)
	}
	return all
}

// forecastMemory forecasts the memory of the devices, for a run that holds all agents and is no
// trial. It ignores errors: a device that cannot tell its memory has failed, and the run will see
// it.
func (r *run) forecastMemory(replicas []Replica) []memory.Forecast {
	if r.setup.Trial() || r.opt.Process != nil {
		return nil
	}
	forecasts, err := memory.Devices(r.setup, devicesOf(replicas)...)
	if err != nil {
		return nil
	}
	return forecasts
}

// compareMemory asks the devices how much memory was taken, logs it with the forecast, and returns
// both. Memory that other processes took meanwhile is included. Devices that failed are left out.
func (r *run) compareMemory() []memory.Forecast {
	var all []memory.Forecast
	at := 0
	for _, w := range r.workers {
		d, ok := w.Device.(memory.Device)
		if !ok || at == len(r.memory) {
			continue
		}
		f := r.memory[at]
		at++
		var err error
		if f.Taken, err = d.Taken(); err != nil {
			continue
		}
		all = append(all, f)
		r.log.Info("memory of "+f.Name, zap.String("forecast", memory.Gigabytes(f.Need)), zap.String("taken",
			memory.Gigabytes(f.Taken)), zap.Float64("taken_over_forecast", float64(f.Taken)/float64(f.Need)))
	}
	return all
}
