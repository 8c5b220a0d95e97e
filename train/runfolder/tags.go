package runfolder

import (
	"fmt"
	"math"

	"fspda/train/config"
	"fspda/train/metric"
)

// scalars calls write with the curves of a row, in the order of the columns. Counts of bits and
// bytes would soon pass the range that float32 holds exactly, so they are in units that the tag
// names.
func scalars(r metric.Row, write func(tag string, value float64) error) error {
	columns := metric.Described()
	for i, v := range r.Values() {
		if c := columns[i]; c.Tag == "" || v != v {
			continue
		} else if err := write(c.Tag, v/c.Unit); err != nil {
			return err
		}
	}
	return nil
}

// number returns a whole number as a float64, or as a text if it is beyond 2^53, from which on a
// float64 does not hold every one.
func number[N int | uint64](n N) any {
	if f := float64(n); math.Abs(f) < 1<<53 {
		return f
	}
	return fmt.Sprint(n)
}

// hyperparameters lists the keys of a configuration that change its results.
func hyperparameters(c config.Config) map[string]any {
	params := map[string]any{}
	for _, f := range c.Fields() {
		if f.Free() {
			continue
		}
		switch v := f.Value.(type) {
		case *int:
			params[f.Name] = number(*v)
		case *uint64:
			params[f.Name] = number(*v)
		case *float64:
			params[f.Name] = *v
		case *bool:
			params[f.Name] = *v
		case *string:
			params[f.Name] = *v
		case *config.AutoFloat:
			params[f.Name] = v.V
			if v.Auto {
				params[f.Name] = "auto"
			}
		case *config.Params:
			for name, value := range *v {
				params[f.Name+"."+name] = value
			}
		default:
			params[f.Name] = fmt.Sprint(v)
		}
	}
	return params
}
