package memory

import (
	"fmt"
	"strings"

	"fspda/device"
	"fspda/train/config"
)

// Check refuses a setup whose forecast exceeds the free memory of a device, or of the host if the
// system tells it. The error suggests settings that would fit.
func Check(s *config.Setup, devices ...device.Device) error {
	forecasts, err := Devices(s, devices...)
	if err != nil {
		return err
	}
	for _, f := range forecasts {
		if f.Need > f.Free {
			return config.Invalid("device", f.Name,
				"%d agents with batches of %d need %s of its memory, of which %s of %s are free: %s",
				f.Agents, s.Config.Batch, Gigabytes(f.Need), Gigabytes(f.Free), Gigabytes(f.Total), remedies(s, f))
		}
	}
	if free, ok := Free(); ok && host(s, devices) > free {
		return config.Invalid("agents", s.Config.Agents, "their vectors and batches need %s of memory, %s are free: "+
			"use fewer agents, a smaller network or a smaller batch", Gigabytes(host(s, devices)), FreeText(free))
	}
	return nil
}

// Gigabytes formats a number of bytes.
func Gigabytes(n uint64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }

// remedies lists changes with which the run would fit.
func remedies(s *config.Setup, f Forecast) string {
	var all []string
	perAgent := max(1, (f.Parts[0].Bytes+f.Parts[1].Bytes)/uint64(f.Agents))
	rest := f.Need - perAgent*uint64(f.Agents)
	if rest < f.Free {
		if fits := (f.Free - rest) / perAgent; fits >= 1 {
			all = append(all, fmt.Sprintf("%d agents would fit", fits))
		}
	} else if left := float64(f.Free) - float64(perAgent*uint64(f.Agents)); left > 0 {
		if fits := int(left / float64(rest) * float64(s.MicroBatch())); fits >= 1 {
			all = append(all, fmt.Sprintf("gradients of %d examples at a time would fit (batch %d, or accumulate %d)",
				fits, fits, (s.Config.Batch+fits-1)/fits))
		}
	}
	if s.Config.Recompute == "none" && s.BufferLen() > 0 {
		all = append(all, "recompute blocks keeps fewer activations")
	}
	if s.Config.Precision == "fp32" || s.Config.Precision == "tf32" {
		all = append(all, "precision fp16 or bf16 halves them")
	}
	return strings.Join(append(all, "or spread the agents over more GPUs, as in cuda:0,1"), "; ")
}
