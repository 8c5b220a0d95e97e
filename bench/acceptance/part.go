package acceptance

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Part is one thing to run. What it finds it puts into its Outcome as it goes on.
type Part struct {
	Name  string // group/what
	Limit time.Duration
	Run   func(ctx context.Context, b *job) error
}

// Status is how a part ended.
type Status string

const (
	Done    Status = "done"
	Failed  Status = "failed"
	TimeOut Status = "out of time"
)

// Outcome is what came of a part.
type Outcome struct {
	Part    string                     `json:"part"`
	Status  Status                     `json:"status"`
	Reason  string                     `json:"why,omitempty"`    // it is not done
	Summary string                     `json:"saw,omitempty"`    // in a few words
	Peer    string                     `json:"beside,omitempty"` // what PyTorch it was measured beside
	Seconds float64                    `json:"seconds"`
	Values  map[string]float64         `json:"values,omitempty"`
	Notes   []string                   `json:"notes,omitempty"`
	Reports map[string]json.RawMessage `json:"reports,omitempty"` // what commands printed
}

// set enters a value. What is not a number has no place in JSON and is left out.
func (o *Outcome) set(key string, v float64) {
	if v-v != 0 {
		return
	}
	if o.Values == nil {
		o.Values = map[string]float64{}
	}
	o.Values[key] = v
}

// best enters a value if it is above what is there.
func (o *Outcome) best(key string, v float64) {
	if old, ok := o.Values[key]; !ok || v > old {
		o.set(key, v)
	}
}

// note keeps a remark, once.
func (o *Outcome) note(text string) {
	for _, n := range o.Notes {
		if n == text {
			return
		}
	}
	o.Notes = append(o.Notes, text)
}

// wanted tells whether a name has one of the parts that only lists by commas; all have where it is
// empty.
func wanted(name, only string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, strings.TrimSpace(part)) {
			return true
		}
	}
	return false
}
