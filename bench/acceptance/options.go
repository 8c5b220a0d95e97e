package acceptance

import (
	"io"
	"slices"
	"time"
)

// Options configures the parts to run, the device, and the time limits.
type Options struct {
	Program string        // path of fspda
	Device  string        // one device, as in train
	Out     string        // folder of the results
	Python  string        // interpreter with PyTorch; empty omits PyTorch
	Data    string        // folder of images; empty: generated images
	Only    string        // substrings of part names, separated by commas; these parts are run again
	Budget  time.Duration // time limit of the whole call
	Tiny    bool          // small shapes and short times, to try the command itself

	Lacks map[string]string // precisions in which the device does not compute, with the reason

	// Lines of text about the implementations of convolutions that the device has chosen, which a fresh
	// machine has not: they are kept in Out, and added to the machine's by the next call
	ReadChoices func() ([]byte, error)
	AddChoices  func(lines []byte) error

	Version  string    // version of the program
	Machine  []Fact    // facts about the machine
	Progress io.Writer // progress messages

	most time.Duration // upper limit of every part's time; 0: none. Tests of hangs set it.
}

// DefaultBudget is the time for the parts of the headline, whose limits add up to less.
const DefaultBudget = 9 * time.Minute

// Fact is a property of the machine.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// pictures are the number and the pixels of the images that are made.
type pictures struct{ count, width, height int }

// crowd is the run whose memory is compared with its forecast, in which all graphs have been
// recorded.
type crowd struct{ agents, batch, iterations int }

type shapes struct {
	network         string
	batches, pixels []int
	turn            string // name of the measurement whose turn it is
	turns           float64
	rounds          int
	iterations      int // iterations of the long run of figure 1
	longest         time.Duration
	curve           int // iterations of the loss curve
	repeat          int
	images          pictures
	crop            int
	loaded          int // batch that the loader feeds
	crowd           crowd
	trained         string // network that is trained on images
	checks          string // checks of the self-test to make, all if empty
	language        languageModel
	smaller         []string // flags that make figure 1 smaller
	compiled        []string // precisions in which PyTorch compiles; nil: all
}

// modes returns the modes in which PyTorch runs in a precision: eager, and compiled.
func (s shapes) modes(precision string) []bool {
	if s.compiled != nil && !slices.Contains(s.compiled, precision) {
		return []bool{false}
	}
	return []bool{false, true}
}

func (o *Options) shapes() shapes {
	if o.Tiny {
		return shapes{network: "resnet18", batches: []int{2}, pixels: []int{32}, turn: "50ms", turns: 0.1, rounds: 1,
			iterations: 20, longest: 10 * time.Second,
			curve: 20, repeat: 4, images: pictures{60, 96, 72}, crop: 32, loaded: 2, crowd: crowd{3, 2, 6},
			trained: "resnet20", checks: "contract/dot,mlp by,training", compiled: []string{"bf16"},
			smaller:  []string{"--batch", "16", "--hidden", "16"},
			language: languageModel{"gpt-nano", "bf16", 4, 4, 128, 2, 64, 65}}
	}
	return shapes{network: "resnet50", batches: []int{128, 256}, pixels: []int{224, 256}, turn: "2s", turns: 2,
		rounds: 2, iterations: 1_000_000, longest: 55 * time.Second, curve: 1000, repeat: 20,
		images: pictures{2000, 500, 375}, crop: 224, loaded: 128, crowd: crowd{8, 128, 40}, trained: "resnet50",
		language: languageModel{"gpt2", "bf16", 12, 12, 768, 16, 1024, 50257}}
}
