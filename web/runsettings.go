package web

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fspda/internal/bounded"
	"fspda/internal/units"
	"fspda/train/config"
	"fspda/train/setting"
)

// Limits of the settings of a list of runs.
const (
	maxVaried  = 40 // keys
	maxSetting = 80 // bytes of a value
)

// computed reports whether a key has no effect on the method, such as threads: runs that differ
// in it are alike.
func computed(key string) bool {
	k, _ := config.Lookup(key)
	return k.Resume == setting.Computed
}

// keysOf returns the keys of a configuration in its order.
func keysOf(yaml string) []string {
	var keys []string
	for line := range strings.Lines(yaml) {
		key, _, ok := strings.Cut(line, ":")
		if ok && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !computed(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// configure takes the keys, the values and the group from a configuration, and returns it; name is
// used in errors. A damaged configuration is none.
func (r *cachedInfo) configure(name string, text []byte) settings {
	yaml, s, err := parseConfig(name, text)
	if err != nil || s == nil {
		return nil
	}
	r.keys, r.values, r.numbers = keysOf(yaml), map[string]string{}, map[string]any{}
	for key, v := range s {
		if text := s.text(key); text != "" {
			r.values[key] = text
		}
		if finite(s.number(key)) {
			r.numbers[key] = v
		}
	}
	r.info.Group = r.group()
	return s
}

// group returns a text that is equal for configurations that differ in their seed only.
func (r *cachedInfo) group() string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(r.values)) {
		if key != "seed" && !computed(key) {
			hash.Write([]byte(key + ":" + r.values[key] + "\n"))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8])
}

// variedKeys returns the keys in which the configurations of runs differ: the algorithm, then those
// of the longest configuration in its order.
func variedKeys(runs map[string]cachedInfo) []string {
	values := map[string]map[string]bool{}
	var order []string
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		if keys := runs[name].keys; len(keys) > len(order) {
			order = keys
		}
		for _, key := range runs[name].keys {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
		}
	}
	for _, r := range runs {
		for key := range values {
			if r.values != nil {
				values[key][r.values[key]] = true
			}
		}
	}
	maps.DeleteFunc(values, func(_ string, v map[string]bool) bool { return len(v) < 2 })
	at := func(key string) int {
		if key == "algo" {
			return -1
		}
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	varied := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
	return varied[:min(len(varied), maxVaried)]
}

// Labels returns names for the runs in folders by their differences, not by common
// settings: the values of as few settings as tell them apart. Runs that differ in their
// seeds only have the same label. A run without a readable configuration is called by its folder.
func Labels(folders []string) []string {
	var runs []cachedInfo
	for _, folder := range folders {
		r := cachedInfo{info: RunInfo{Name: filepath.Base(folder)}}
		if text, err := bounded.YAMLFile(filepath.Join(folder, "config.yaml")); err == nil {
			r.configure(folder, text)
		}
		runs = append(runs, r)
	}
	byName := map[string]cachedInfo{}
	for i, r := range runs {
		byName[strconv.Itoa(i)] = r
	}
	keys := distinguishing(runs, slices.DeleteFunc(variedKeys(byName), func(k string) bool { return k == "seed" }))
	groups, labels := map[string]map[string]bool{}, make([]string, len(runs))
	for i, r := range runs {
		labels[i] = r.label(keys)
		if groups[labels[i]] == nil {
			groups[labels[i]] = map[string]bool{}
		}
		groups[labels[i]][r.info.Group] = true
	}
	for i, r := range runs {
		if labels[i] == "" || len(groups[labels[i]]) > 1 || r.values == nil {
			labels[i] = r.info.Name
		}
	}
	return labels
}

// distinguishing returns as few keys as tell the configurations of runs apart, the first ones where
// several would do.
func distinguishing(runs []cachedInfo, keys []string) []string {
	var chosen []string
	parts := func(keys []string) int {
		seen := map[string]bool{}
		for _, r := range runs {
			seen[fmt.Sprint(r.some(keys))] = true
		}
		return len(seen)
	}
	for _, k := range keys {
		if more := append(slices.Clone(chosen), k); parts(more) > parts(chosen) {
			chosen = more
		}
	}
	return chosen
}

// label writes the values of keys; the names of algorithm, model and data need no
// key.
func (r cachedInfo) label(keys []string) string {
	var words []string
	for _, k := range keys {
		v := clean(cmp.Or(r.values[k], units.Dash))
		if !slices.Contains([]string{"algo", "model", "data"}, k) {
			v = strings.ReplaceAll(k, "_", " ") + " " + v
		}
		words = append(words, v)
	}
	return strings.Join(words, ", ")
}

// some returns the settings of the keys that the run has.
func (r cachedInfo) some(keys []string) map[string]string {
	chosen := map[string]string{}
	for _, key := range keys {
		if v := r.values[key]; v != "" {
			chosen[key] = clean(v[:min(len(v), maxSetting)])
		}
	}
	return chosen
}

// typed is some with numbers as numbers.
func (r cachedInfo) typed(keys []string) map[string]any {
	chosen := map[string]any{}
	for key, text := range r.some(keys) {
		chosen[key] = text
		if v, ok := r.numbers[key]; ok {
			chosen[key] = v
		}
	}
	return chosen
}
