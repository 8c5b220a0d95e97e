package runfolder

import (
	"fmt"

	"fspda/train/config"
	"fspda/train/evaluate"
)

// scalarTag is a curve in TensorBoard: its tag, whose first part is its group, and the unit in
// which it is shown; 0: as it is. Counts of bits and bytes would soon pass what float32 holds
// exactly, so they are in units that the tag names.
type scalarTag struct {
	tag  string
	unit float64
}

// scalarTags maps the columns of metrics to curves.
var scalarTags = map[string]scalarTag{
	"epoch":            {tag: "progress/epoch"},
	"train_loss_worst": {tag: "train/loss_worst"}, "train_loss_avg": {tag: "train/loss"},
	"train_data_loss_avg": {tag: "train/data_loss"},
	"grad_sq_worst":       {tag: "train/grad_sq_worst"}, "grad_sq_avg": {tag: "train/grad_sq"},
	"consensus": {tag: "consensus/sum"}, "consensus_max": {tag: "consensus/max"},
	"test_loss_avg": {tag: "test/loss"}, "test_loss_mean": {tag: "test/loss_agents"},
	"test_acc_avg": {tag: "test/accuracy"}, "test_acc_min": {tag: "test/accuracy_min"},
	"test_acc_mean": {tag: "test/accuracy_agents"}, "test_acc_max": {tag: "test/accuracy_max"},
	"test_top5_avg": {tag: "test/top5"},
	"dual_sum":      {tag: "dual/sum"}, "dual_track": {tag: "dual/track"},
	"bits_total": {"bits/total_Gbit", 1e9}, "bits_agent_max": {"bits/agent_max_Gbit", 1e9},
	"bits_shared_seed": {"bits/shared_seed_Gbit", 1e9}, "bits_packed": {"bits/packed_Gbit", 1e9},
	"bits_reference": {"bits/reference_Gbit", 1e9}, "overhead_bits": {"bits/overhead_Gbit", 1e9},
	"wire_bytes":  {"bits/wire_GB", 1e9},
	"far_decodes": {tag: "lattice/far_decodes"}, "largest_decode": {tag: "lattice/largest_decode"},
	"clipped_grads": {tag: "steps/clipped_gradients"},
	"perplexity":    {tag: "test/perplexity"}, "bits_per_byte": {tag: "test/bits_per_byte"},
	"skipped_grads": {tag: "precision/skipped_gradients"}, "loss_scale": {tag: "precision/loss_scale"},
	"agents_present": {tag: "progress/agents_present"},
	"grads_total":    {"progress/gradients_thousands", 1e3},
	"lr":             {tag: "steps/alpha"}, "eta": {tag: "steps/eta"},
	"virtual_time": {tag: "time/virtual"}, "virtual_time_mean": {tag: "time/virtual_mean"},
	"wall_s": {tag: "time/wall_s"},
}

// scalars calls write with the curves of a row, in the order of the columns.
func scalars(r evaluate.Row, write func(tag string, value float64) error) error {
	columns := evaluate.Columns()
	for i, v := range r.Values() {
		s, ok := scalarTags[columns[i]]
		if !ok || v != v {
			continue
		}
		if s.unit > 0 {
			v /= s.unit
		}
		if err := write(s.tag, v); err != nil {
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
