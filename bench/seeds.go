package bench

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
)

// Seeds are the seeds with which each setting is run.
type Seeds []uint64

const maxSeeds = 1000

func (s Seeds) String() string {
	words := make([]string, len(s))
	for i, v := range s {
		words[i] = strconv.FormatUint(v, 10)
	}
	return strings.Join(words, ",")
}

// Set reads a number of seeds, which are then 1, 2 and so on, or a list such as 1,5,9.
func (s *Seeds) Set(text string) error {
	parts := strings.Split(strings.TrimSpace(text), ",")
	bad := fmt.Errorf("%q is neither a number of seeds from 1 to %d, such as 3, nor a list of different seeds, such "+
		"as 1,2,3", text, maxSeeds)
	if len(parts) == 1 {
		n, err := strconv.Atoi(parts[0])
		if err != nil || n < 1 || n > maxSeeds {
			return bad
		}
		*s = nil
		for k := range n {
			*s = append(*s, uint64(k)+1)
		}
		return nil
	}
	var list Seeds
	for _, p := range parts {
		v, err := strconv.ParseUint(strings.TrimSpace(p), 10, 64)
		if err != nil || slices.Contains(list, v) || len(list) == maxSeeds {
			return bad
		}
		list = append(list, v)
	}
	*s = list
	return nil
}

// Type is the name of the type in help texts.
func (Seeds) Type() string { return "seeds" }

func (s *Seeds) UnmarshalYAML(text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		return s.Set(fmt.Sprint(v))
	}
	words := make([]string, len(list))
	for i, item := range list {
		words[i] = fmt.Sprint(item)
	}
	if len(words) == 1 { // Set would read it as a number of seeds
		n, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil {
			return fmt.Errorf("the seed %q is not a whole number of at least 0", words[0])
		}
		*s = Seeds{n}
		return nil
	}
	return s.Set(strings.Join(words, ","))
}

// Jobs returns each job once for each seed. Without seeds it returns the jobs as they are.
func (s Seeds) Jobs(jobs []Job) ([]Job, error) {
	if len(s) == 0 {
		return jobs, nil
	}
	var all []Job
	for _, j := range jobs {
		if slices.Contains(j.Shared, "seed") {
			return nil, &train.ConfigError{Key: "seed", Got: fmt.Sprint(j.Config.Seed),
				Want: fmt.Sprintf("seeds %s are set too: leave one of the two out", s)}
		}
		for _, seed := range s {
			one := j
			one.Setting, one.Name, one.Config.Seed = j.Name, fmt.Sprintf("%s-seed-%d", j.Name, seed), seed
			all = append(all, one)
		}
	}
	return all, nil
}

// Setting is a setting with the outcomes of its runs, which differ in their seeds only.
type Setting struct {
	Name, Title string
	Outcomes    []*Outcome
}

// seedSuffix is the end of the name of a run of several seeds.
var seedSuffix = regexp.MustCompile(`-seed-[0-9]+$`)

// Settings puts outcomes together that differ in their seeds only, in the order of their first
// runs. Outcomes that are nil are left out. Runs that were read from folders belong together if
// their configurations agree in all but the seed, or if one command made them, as their names say:
// then auto values of random graphs may differ too.
func Settings(outcomes []*Outcome) []Setting {
	var all []Setting
	at := map[string]int{}
	for _, o := range outcomes {
		if o == nil {
			continue
		}
		keys := o.settingKeys()
		k, known := at[keys[0]]
		if !known && len(keys) > 1 {
			k, known = at[keys[1]]
		}
		if !known || all[k].has(o.Job.Config.Seed) {
			k = len(all)
			all = append(all, Setting{Name: o.settingName(), Title: o.settingTitle()})
		}
		for _, key := range keys {
			at[key] = k
		}
		all[k].Outcomes = append(all[k].Outcomes, o)
	}
	for k := range all {
		if s := &all[k]; len(s.Outcomes) == 1 && s.Outcomes[0].Job.Setting == "" {
			s.Name, s.Title = s.Outcomes[0].Job.Name, s.Outcomes[0].Job.Title
		}
	}
	return all
}

// has reports whether a run of a seed is there.
func (s Setting) has(seed uint64) bool {
	return slices.ContainsFunc(s.Outcomes, func(o *Outcome) bool { return o.Job.Config.Seed == seed })
}

// settingKeys returns texts that are equal for runs of one setting.
func (o *Outcome) settingKeys() []string {
	if o.Job.Setting != "" {
		return []string{"job " + o.Job.Setting}
	}
	c := o.Job.Config
	c.Seed = 0
	keys := []string{"configuration " + c.Fingerprint()}
	if suffix := fmt.Sprintf("-seed-%d", o.Job.Config.Seed); o.Folder != "" && strings.HasSuffix(o.Folder, suffix) {
		keys = append(keys, "folder "+strings.TrimSuffix(o.Folder, suffix))
	}
	return keys
}

func (o *Outcome) settingName() string {
	if o.Job.Setting != "" {
		return o.Job.Setting
	}
	return seedSuffix.ReplaceAllString(o.Job.Name, "")
}

func (o *Outcome) settingTitle() string { return seedSuffix.ReplaceAllString(o.Job.Title, "") }

// status says how the runs of a setting ended.
func (s Setting) status() string {
	if share := s.Outcomes[0].Dropped; share > 0 {
		return fmt.Sprintf("given up at %g %%", 100*share)
	}
	count := map[train.Status]int{}
	for _, o := range s.Outcomes {
		count[o.Status]++
	}
	var words []string
	for _, k := range []train.Status{train.Finished, train.Stopped, train.Diverged, ""} {
		name := cmp.Or(string(k), string(train.Stopped))
		switch {
		case count[k] == len(s.Outcomes):
			return name
		case count[k] > 0:
			words = append(words, fmt.Sprintf("%d %s", count[k], name))
		}
	}
	return strings.Join(words, ", ")
}

// Label returns the title of a setting, with the number of its runs.
func (s Setting) Label() string {
	if len(s.Outcomes) == 1 {
		return s.Title
	}
	return fmt.Sprintf("%s (%d seeds)", s.Title, len(s.Outcomes))
}

// moments returns the mean of the finite values, their sample standard deviation, with n-1 in the
// denominator, and their number n. The deviation of fewer than two is NaN.
func moments(values []float64) (mean, deviation float64, n int) {
	sum := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += v
			n++
		}
	}
	mean = sum / float64(n)
	squares := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			squares += (v - mean) * (v - mean)
		}
	}
	if n < 2 {
		return mean, math.NaN(), n
	}
	return mean, math.Sqrt(squares / float64(n-1)), n
}
