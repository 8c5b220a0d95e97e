//go:build !amd64 || noasm

package cpu

import "time"

func peak(d time.Duration) float64 { return ratePeak(d) }
