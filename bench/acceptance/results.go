package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fspda/internal/wholefile"
	"fspda/train"
)

// Results holds all results so far.
type Results struct {
	Version  string     `json:"version"`
	Device   string     `json:"device"`
	Tiny     bool       `json:"tiny,omitempty"`
	Began    time.Time  `json:"began"`
	Machine  []Fact     `json:"machine"`
	Table    []Line     `json:"lines"`
	Outcomes []*Outcome `json:"parts"` // outcomes in the order in which the parts ran

	options *Options
}

// resultsFile holds the results as JSON, tableFile as text, and choicesFile the choices.
const (
	resultsFile = "card.json"
	tableFile   = "card.md"
	choicesFile = "choices.jsonl"
)

// open creates the folder, or reads the results of an earlier call. Results of another program
// version or device are an error.
func open(o *Options) (*Results, error) {
	if err := os.MkdirAll(filepath.Join(o.Out, "logs"), 0o755); err != nil {
		return nil, &train.FolderError{Path: o.Out, Got: "cannot be made", Err: err, Hint: "give another --out"}
	}
	if err := o.takeChoices(); err != nil {
		return nil, err
	}
	r := &Results{Version: o.Version, Device: o.Device, Tiny: o.Tiny, Began: time.Now().UTC().Truncate(time.Second),
		Machine: o.Machine, options: o}
	path := filepath.Join(o.Out, resultsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, r.save()
	}
	if err != nil {
		return nil, &train.FolderError{Path: path, Got: "cannot be read", Err: err}
	}
	old := &Results{options: o}
	if err := json.Unmarshal(text, old); err != nil {
		return nil, &train.FolderError{Path: path, Got: "is no file of results", Err: err,
			Hint: "remove it, or give another --out"}
	}
	if old.Version != o.Version || old.Device != o.Device || old.Tiny != o.Tiny {
		return nil, &train.FolderError{Path: path, Got: fmt.Sprintf("has results of fspda %s on %s", old.Version,
			old.Device), Hint: "give another --out, or remove it"}
	}
	old.Machine = o.Machine
	return old, nil
}

// takeChoices adds the choices of an earlier call to the choices of the machine.
func (o *Options) takeChoices() error {
	path := filepath.Join(o.Out, choicesFile)
	lines, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = o.AddChoices(lines)
	}
	if err != nil {
		return &train.FolderError{Path: path, Got: "cannot be taken over", Err: err,
			Hint: "remove it, or set XDG_CACHE_HOME to a folder that can be written"}
	}
	return nil
}

// keepChoices writes the choices of the machine to the folder.
func (o *Options) keepChoices() error {
	lines, err := o.ReadChoices()
	if err != nil || len(lines) == 0 { // no folder for them: each call measures
		return nil
	}
	return wholefile.Write(filepath.Join(o.Out, choicesFile), lines)
}

// outcome returns the outcome of a part, or nil.
func (r *Results) outcome(part string) *Outcome {
	if i := r.index(part); i >= 0 {
		return r.Outcomes[i]
	}
	return nil
}

// firstOf returns the first outcome of some parts that has a value, or nil.
func (r *Results) firstOf(key string, parts ...string) *Outcome {
	for _, part := range parts {
		if o := r.outcome(part); o != nil {
			if _, there := o.Values[key]; there {
				return o
			}
		}
	}
	return nil
}

func (r *Results) index(part string) int {
	return slices.IndexFunc(r.Outcomes, func(o *Outcome) bool { return o.Part == part })
}

func (r *Results) newOutcome(part string) *Outcome {
	out := &Outcome{Part: part, Status: TimeOut, Reason: "it was not finished"} // until the part ends
	if i := r.index(part); i >= 0 {
		r.Outcomes[i] = out
	} else {
		r.Outcomes = append(r.Outcomes, out)
	}
	return out
}

// Failed returns the number of parts that did not complete.
func (r *Results) Failed() (n int) {
	for _, o := range r.Outcomes {
		if o.Status == Failed {
			n++
		}
	}
	return n
}

func (r *Results) save() error {
	r.Table = r.Lines()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	err = errors.Join(r.options.keepChoices(),
		wholefile.Write(filepath.Join(r.options.Out, resultsFile), append(text, '\n')),
		wholefile.Write(filepath.Join(r.options.Out, tableFile), []byte(r.Markdown())))
	if err != nil {
		return &train.FolderError{Path: r.options.Out, Got: "cannot be written", Err: err,
			Hint: "make room, or give another --out"}
	}
	return nil
}
