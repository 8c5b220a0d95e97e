package bench

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/rng"
	"fspda/train"
)

// maxRuns limits the number of points of a run.
const maxRuns = 10000

type setting struct{ key, value string }

// pointsOf returns the points of a run: every combination of the values of its grid, each with a
// number of draws of its random keys.
func (s *Search) pointsOf(r *Run) ([][]setting, error) {
	all := [][]setting{nil}
	for _, item := range r.Grid {
		values, ok := item.Value.([]any)
		if !ok || len(values) == 0 {
			return nil, &train.ConfigError{Key: fmt.Sprintf("grid: %v", item.Key), Got: fmt.Sprint(item.Value),
				Want: "expected a list of values, such as [0.1, 0.3]"}
		}
		if at := repeated(values); at != "" {
			return nil, &train.ConfigError{Key: fmt.Sprintf("grid: %v", item.Key), Got: fmt.Sprint(item.Value),
				Want: "has " + at + " twice: name each value once; for several runs of a setting write seeds"}
		}
		var longer [][]setting
		for _, p := range all {
			for _, v := range values {
				text, err := value(v)
				if err != nil {
					return nil, err
				}
				longer = append(longer, append(slices.Clone(p), setting{fmt.Sprint(item.Key), text}))
			}
		}
		if all = longer; len(all) > maxRuns {
			return nil, &train.ConfigError{Key: "grid", Got: fmt.Sprintf("of more than %d runs", maxRuns),
				Want: "use fewer values, or random"}
		}
	}
	if len(r.Random) == 0 {
		return all, nil
	}
	if most := maxRuns / len(all); s.Samples > most {
		return nil, &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples), Want: fmt.Sprintf("expected at "+
			"most %d: a sweep has at most %d runs", most, maxRuns)}
	}
	var drawn [][]setting
	for _, p := range all {
		for k := range s.Samples {
			q := slices.Clone(p)
			for _, item := range r.Random {
				v, err := s.draw(fmt.Sprint(item.Key), item.Value, k)
				if err != nil {
					return nil, err
				}
				q = append(q, setting{fmt.Sprint(item.Key), v})
			}
			drawn = append(drawn, q)
		}
	}
	return drawn, nil
}

// repeated returns a value that occurs twice in a list; empty: none does.
func repeated(values []any) string {
	seen := map[string]bool{}
	for _, v := range values {
		text := fmt.Sprint(v)
		if seen[text] {
			return text
		}
		seen[text] = true
	}
	return ""
}

// value formats a value of the grid as YAML on one line.
func value(v any) (string, error) {
	text, err := yaml.MarshalWithOptions(v, yaml.Flow(true))
	return strings.TrimSpace(string(text)), err
}

// draw returns the k-th draw of a key. It depends only on the seed of the draws, the key and k, so
// more samples or keys do not change earlier draws.
func (s *Search) draw(key string, distribution any, k int) (string, error) {
	stream := rng.New(s.Seed, "sweep", hash(key), uint64(k))
	if list, ok := distribution.([]any); ok && len(list) > 0 {
		return value(list[stream.IntN(len(list))])
	}
	name, arg, _ := strings.Cut(strings.ReplaceAll(fmt.Sprint(distribution), " ", ""), "(")
	arg, closed := strings.CutSuffix(arg, ")")
	from, to, two := strings.Cut(arg, ",")
	a, errA := strconv.ParseFloat(from, 64)
	b, errB := strconv.ParseFloat(to, 64)
	bad := !closed || !two || errA != nil || errB != nil || !(a < b) || math.IsInf(b-a, 0)
	u := stream.Float64()
	switch {
	case !bad && name == "uniform":
		return strconv.FormatFloat(digits(a+(b-a)*u), 'g', -1, 64), nil
	case !bad && name == "log" && a > 0:
		return strconv.FormatFloat(digits(a*math.Pow(b/a, u)), 'g', -1, 64), nil
	case !bad && name == "int" && a == math.Trunc(a) && b == math.Trunc(b) && max(-a, b) <= 1<<53:
		return strconv.Itoa(int(a) + stream.IntN(int(b-a)+1)), nil
	}
	return "", &train.ConfigError{Key: "random: " + key, Got: fmt.Sprint(distribution),
		Want: "expected uniform(a,b), log(a,b) with a above 0, int(a,b), each with a below b, both finite, or a list " +
			"of values"}
}

// hash returns the FNV-1a hash of a name.
func hash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// plainName replaces characters of a value that file names may not contain.
func plainName(v string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r) {
			return r
		}
		return '_'
	}, strings.Trim(v, `"'`))
}
