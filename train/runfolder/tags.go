package runfolder

import (
	"fmt"

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

// hyperparameters lists the keys of a configuration that change its results.
func hyperparameters(c config.Config) map[string]any {
	params := map[string]any{}
	for _, f := range c.Fields() {
		if f.Free() {
			continue
		}
		switch v := f.Value.(type) {
		case *int:
			params[f.Name] = float64(*v)
		case *uint64:
			params[f.Name] = float64(*v)
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
