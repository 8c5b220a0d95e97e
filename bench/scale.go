package bench

import "fspda/train"

type Scale struct {
	Share  float64
	Retune bool
}

func (s Scale) check() error                                  { return nil }
func (s Scale) apply(c train.Config, points int) train.Config { return c }
