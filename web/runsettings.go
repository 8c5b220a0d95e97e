package web

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of the settings of a list of runs.
const (
	maxVaried  = 40 // keys
	maxSetting = 80 // bytes of a value
)

// ownKeys lists the keys that say how a run is computed and not what: they make no other setting.
var ownKeys = []string{"threads", "checkpoint_every", "keep_checkpoints"}

// keysOf returns the keys of a configuration in its order.
func keysOf(yaml string) []string {
	var keys []string
	for line := range strings.Lines(yaml) {
		key, _, ok := strings.Cut(line, ":")
		if ok && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !slices.Contains(ownKeys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// groupOf returns a text that is equal for configurations that differ in their seed only. It is
// empty without a configuration.
func groupOf(s settings) string {
	if s == nil {
		return ""
	}
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if key != "seed" && !slices.Contains(ownKeys, key) {
			hash.Write([]byte(key + ":" + s.text(key) + "\n"))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8])
}

// variedKeys returns the keys in which the configurations of runs differ, in the order of the
// longest configuration.
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
			if r.settings != nil {
				values[key][r.settings.text(key)] = true
			}
		}
	}
	maps.DeleteFunc(values, func(_ string, v map[string]bool) bool { return len(v) < 2 })
	at := func(key string) int {
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

// some returns the settings of the keys that the run has.
func (r cachedInfo) some(keys []string) map[string]string {
	chosen := map[string]string{}
	for _, key := range keys {
		if v := r.settings.text(key); v != "" {
			chosen[key] = clean(v[:min(len(v), maxSetting)])
		}
	}
	return chosen
}
