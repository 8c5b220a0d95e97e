package acceptance

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Part is one unit of work. It adds its findings to its Outcome as it proceeds.
type Part struct {
	Name  string // group/measurement
	Limit time.Duration
	Run   func(ctx context.Context, b *job) error
	// Begin starts work in the background before the first part that is not alone. Most parts have
	// none.
	Begin func(ctx context.Context)
	// Alone has nothing run in the background. Such parts come first.
	Alone bool
}

// Status is the way in which a part ended.
type Status string

const (
	Done    Status = "done"
	Failed  Status = "failed"
	TimeOut Status = "out of time"
	Skipped Status = "skipped" // the device cannot do it
)

// Outcome is the result of a part.
type Outcome struct {
	Part    string                     `json:"part"`
	Status  Status                     `json:"status"`
	Reason  string                     `json:"why,omitempty"`    // reason why it is not done
	Summary string                     `json:"saw,omitempty"`    // summary of the findings
	Peer    string                     `json:"beside,omitempty"` // version of PyTorch that it was compared with
	Seconds float64                    `json:"seconds"`
	Values  map[string]float64         `json:"values,omitempty"`
	Notes   []string                   `json:"notes,omitempty"`
	Reports map[string]json.RawMessage `json:"reports,omitempty"` // output of commands
}

// set stores a value, unless it is NaN or infinite, which JSON cannot represent.
func (o *Outcome) set(key string, v float64) {
	if v-v != 0 {
		return
	}
	if o.Values == nil {
		o.Values = map[string]float64{}
	}
	o.Values[key] = v
}

// best stores a value if it is larger than the stored one.
func (o *Outcome) best(key string, v float64) {
	if old, ok := o.Values[key]; !ok || v > old {
		o.set(key, v)
	}
}

// note adds a remark, once.
func (o *Outcome) note(text string) {
	if !slices.Contains(o.Notes, text) {
		o.Notes = append(o.Notes, text)
	}
}
