package train

import (
	"go.uber.org/zap"

	"fspda/device"
	"fspda/train/memory"
)

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
	for _, f := range forecasts {
		if f.Unused != nil {
			r.log.Warn("the memory of "+f.Name+" is estimated", zap.Error(f.Unused))
		}
	}
	return forecasts
}

// compareMemory asks the devices how much memory was taken, and logs it with the forecast.
// iterations is the number of iterations of this run, or 0 while it goes on.
func (r *run) compareMemory(iterations int) []memory.Forecast {
	all, err := memory.Compare(r.memory, iterations, devicesOf(r.opt.replicas())...)
	if err != nil {
		r.log.Warn("the measured memory is not stored", zap.Error(err))
	}
	for _, f := range all {
		r.log.Info("memory of "+f.Name, zap.String("forecast", memory.Gigabytes(f.Need)), zap.String("taken",
			memory.Gigabytes(f.Taken)), zap.Float64("taken_over_forecast", float64(f.Taken)/float64(f.Need)))
	}
	return all
}
