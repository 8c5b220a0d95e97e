package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/train"
)

// lab opens configurations on small built-in data, each set once.
type lab struct {
	mu   sync.Mutex
	sets map[string]*data.Set
}

func (l *lab) open(c train.Config) (*train.Setup, train.Model, device.Device, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprint(c.DataTrain, c.DataTest)
	if l.sets[key] == nil {
		set, err := data.Synthetic(data.SyntheticOptions{Train: c.DataTrain, Test: c.DataTest, Seed: 1})
		if err != nil {
			return nil, nil, nil, err
		}
		l.sets = map[string]*data.Set{key: set}
	}
	set := l.sets[key]
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden,
		Activation: c.Activation, WeightDecay: c.WeightDecay})
	if err != nil {
		return nil, nil, nil, err
	}
	dev := cpu.New()
	m := model.NewEngine(net, dev)
	s, err := c.Resolve(set, m)
	return s, m, dev, err
}

func synthetic(examples, test int) func(*train.Config) {
	return func(c *train.Config) { c.Data, c.DataTrain, c.DataTest = "synthetic", examples, test }
}

// Every preset in every flavour is a run that passes all checks, those of step sizes included, at
// full length and scaled. Those of figure 2 pass the checks that need no ImageNet.
func TestPresets(t *testing.T) {
	all, err := Figures()
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	l := &lab{}
	for _, f := range all {
		if f.Search != nil {
			continue
		}
		numbers = append(numbers, f.Number)
		for _, variant := range VariantNames {
			scales := []Scale{{Share: 1}, {Share: 0.0005, Retune: true}, {Share: 0.02, Retune: true}, {Share: 0.01}}
			if variant != VariantNames[0] && os.Getenv("FSPDA_LONG") == "" {
				scales = scales[:2]
			}
			for _, s := range scales {
				if f.Number == 2 { // ImageNet
					checks(t, f, variant, s)
					continue
				}
				jobs, err := f.Jobs(Options{Variant: variant, Scale: s, Adjust: synthetic(2560, 20)})
				if err != nil {
					t.Fatalf("figure %d, %s: %v", f.Number, variant, err)
				}
				if f.Steps != nil {
					continue
				}
				for _, j := range jobs {
					if _, _, _, err := l.open(j.Config); err != nil {
						t.Errorf("figure %d, %s, scale %+v, %s: %v", f.Number, variant, s, j.Name, err)
					}
				}
			}
		}
	}
	if want := []int{1, 2, 4, 5, 6, 7, 8, 9}; !slices.Equal(numbers, want) {
		t.Errorf("the figures are %v, want %v", numbers, want)
	}
}

// checks wants the runs of a figure to pass every check that comes before data are read.
func checks(t *testing.T, f *Experiment, variant string, s Scale) {
	jobs, err := f.Jobs(Options{Variant: variant, Scale: s})
	if err != nil {
		t.Fatalf("figure %d, %s: %v", f.Number, variant, err)
	}
	for _, j := range jobs {
		if err := j.Config.Check(); err != nil {
			t.Errorf("figure %d, %s, scale %+v, %s: %v", f.Number, variant, s, j.Name, err)
		}
	}
}

// Some numbers of the paper's tables, and what the flavours change.
func TestFigureOne(t *testing.T) {
	f, err := FindFigure("mnist-main")
	if err != nil {
		t.Fatal(err)
	}
	get := func(variant, run string) train.Config {
		jobs, err := f.Jobs(Options{Variant: variant, Scale: Scale{Share: 1}, Only: []string{run}})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%s %s: %v, %d jobs", variant, run, err, len(jobs))
		}
		return jobs[0].Config
	}
	sa := get("released", "sa")
	if sa.Algo != "fspda-sa" || sa.Alpha != 1e-4 || sa.Eta.V != 1e-5 || sa.Gamma != 0.5 || sa.Beta != 1 ||
		sa.Density != 0.1 || sa.Momentum != 0.9 || sa.Edges != "one-edge-round-robin" || sa.Mask != "randk-per-layer" ||
		sa.Graph != "er10-published" || sa.Partition != "sorted" || sa.Batch != 256 || sa.Iterations != 1e6 ||
		sa.EvalPoints != 500 || sa.WeightDecay != 1e-4 || sa.Dual != "same-time" {
		t.Errorf("released FSPDA-SA is %+v", sa)
	}
	if c := get("printed", "sa"); c.Momentum != 0 || c.Edges != "one-edge" || c.Mask != "randk" {
		t.Errorf("printed FSPDA-SA is %+v", c)
	}
	if c := get("bug-compat", "sa"); c.Dual != "stale-neighbour" || c.Momentum != 0.9 {
		t.Errorf("bug-compat FSPDA-SA is %+v", c)
	}
	if c := get("bug-compat", "storm"); c.StormLambda != "lagged" || c.Momentum != 0 || c.Beta != 0.1 ||
		c.Eta.V != 1e-2 || c.AX != 0.01 || c.Density != 0.067 {
		t.Errorf("bug-compat FSPDA-STORM is %+v", c)
	}
	if c := get("released", "kgt"); c.LocalSteps != 150 || c.Iterations%150 != 0 ||
		math.Abs(float64(c.Iterations)/1e6-1) > 0.02 || c.Density != 1 {
		t.Errorf("K-GT is %+v", c)
	}
}

func TestFigureMistakes(t *testing.T) {
	f, err := FindFigure("4")
	if err != nil {
		t.Fatal(err)
	}
	_, unknown := FindFigure("mnist-mian")
	_, sketch := FindFigure("3")
	_, variant := f.Jobs(Options{Variant: "release", Scale: Scale{Share: 1}})
	_, run := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 1}, Only: []string{"sa", "chocco-sorted"}})
	_, scale := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 2}})
	_, retune := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 1, Retune: true}})
	for _, c := range []struct {
		err   error
		words []string
	}{
		{unknown, []string{"mnist-main", "mnist-hetero"}},
		{sketch, []string{"nothing to run"}},
		{variant, []string{"did you mean released", "bug-compat"}},
		{run, []string{"did you mean choco-sorted", "storm-shuffled"}},
		{scale, []string{"scale 2", "at most 1"}},
		{retune, []string{"retune", "without a scale below 1"}},
	} {
		if _, ok := errors.AsType[*train.ConfigError](c.err); !ok {
			t.Errorf("%v is no ConfigError", c.err)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(c.err.Error(), w) {
				t.Errorf("%q does not speak of %q", c.err, w)
			}
		}
	}
	jobs, err := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 1},
		Only: []string{"sa", "storm-sorted"}})
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	if want := []string{"sa-sorted", "storm-sorted", "sa-shuffled"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("chose %v, %v, want %v", names, err, want)
	}
}

// Each key of a figure's file has an effect: those of a run on it, and those of all runs on at
// least one of them.
func TestKeysOfFigures(t *testing.T) {
	all, err := Figures()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{}
	for _, f := range all {
		if f.Search != nil {
			continue
		}
		for _, variant := range VariantNames {
			shared, used := keysOf(f.Base, f.Variants[variant]), map[string]bool{}
			for _, r := range f.Runs {
				c, err := f.config(&r, variant, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c, err = (Scale{Share: 1}).apply(c, 0, 1); err != nil {
					t.Fatal(err)
				}
				c.TakeExplicit()
				synthetic(2560, 20)(&c)
				if f.Number == 2 { // the printed theta of CHOCO-SGD is refused as unstable
					c.Theta = train.AutoFloat{Auto: true}
				}
				given := c
				c.SetExplicit(keysOf(r.Set, r.Variants[variant])...)
				s, _, _, err := l.open(c)
				if err != nil {
					t.Fatalf("figure %d, %s, run %s: %v", f.Number, variant, r.Name, err)
				}
				unused := map[string]bool{}
				for _, u := range s.Unused(given) {
					unused[u.Key] = true
				}
				for _, key := range shared {
					used[key] = used[key] || !unused[key]
				}
			}
			for _, key := range shared {
				if !used[key] {
					t.Errorf("figure %d, %s: %s has no effect on any run", f.Number, variant, key)
				}
			}
		}
	}
}

func keysOf(parts ...yaml.MapSlice) (keys []string) {
	for _, part := range parts {
		for _, item := range part {
			keys = append(keys, fmt.Sprint(item.Key))
		}
	}
	return keys
}
