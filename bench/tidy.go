package bench

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fspda/train"
)

// WriteTidy writes the evaluations of runs as one tidy CSV, a line for each evaluation of each run:
// the names of run and setting, the seed, the keys in which the runs differ, the status, and all
// columns of metrics.csv. Settings of an algorithm's own have a column each, params.NAME.
func WriteTidy(w io.Writer, outcomes []*Outcome) error {
	keys := differing(outcomes)
	lines := [][]string{append(append([]string{"run", "setting", "seed"}, keys...),
		append([]string{"status"}, train.Columns()...)...)}
	for _, o := range outcomes {
		if o == nil {
			continue
		}
		values := valuesOf(o.Job.Config)
		head := []string{o.Job.Name, cmp.Or(o.Job.Setting, seedSuffix.ReplaceAllString(o.Job.Name, "")),
			strconv.FormatUint(o.Job.Config.Seed, 10)}
		for _, key := range keys {
			head = append(head, values[key])
		}
		head = append(head, cmp.Or(string(o.Status), string(train.Stopped)))
		for _, r := range o.Rows {
			lines = append(lines, append(head[:len(head):len(head)], strings.Split(r.CSV(), ",")...))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// differing lists the keys in which configurations differ, besides the seed.
func differing(outcomes []*Outcome) (keys []string) {
	var first map[string]string
	differs := map[string]bool{}
	var order []string
	for _, o := range outcomes {
		if o == nil {
			continue
		}
		values := valuesOf(o.Job.Config)
		for _, key := range keyNames(o.Job.Config) {
			if _, known := differs[key]; !known {
				order, differs[key] = append(order, key), first != nil // a run before this one lacks it
			}
		}
		if first == nil {
			first = values
		}
		for key := range differs {
			differs[key] = differs[key] || values[key] != first[key]
		}
	}
	for _, key := range order {
		if differs[key] && key != "seed" {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyNames lists the keys of a configuration in order, its algorithm's own keys last.
func keyNames(c train.Config) (keys []string) {
	for _, f := range c.Fields() {
		if f.Name != "params" {
			keys = append(keys, f.Name)
		}
	}
	return append(keys, c.Params.Keys()...)
}

// valuesOf returns the values of a configuration by key, as texts.
func valuesOf(c train.Config) map[string]string {
	values := map[string]string{}
	for _, f := range c.Fields() {
		values[f.Name] = f.Text()
	}
	for name, v := range c.Params {
		values["params."+name] = fmt.Sprint(v)
	}
	return values
}
