//go:build !amd64 || noasm || fspda_noasm

package tile

import "time"

func Peak(time.Duration) float64 { return 0 }
