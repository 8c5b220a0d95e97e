package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/acceptance"
	"fspda/cli/command"
	"fspda/cuda"
	"fspda/device"
	"fspda/train"
	"fspda/train/runfolder"
)

func newBenchCard() *cobra.Command {
	o := acceptance.Options{Device: "cuda", Out: "card", Python: "python3", Budget: acceptance.DefaultBudget,
		ReadChoices: cuda.ReadChoices, AddChoices: cuda.AddChoices}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "card",
		Short: "Run all acceptance tests of a GPU, the headline in nine minutes, and compare them with their targets",
		Long: `Run all acceptance tests of a GPU: self-tests in every precision, ResNet-50 against the memory's roofline and against
PyTorch (eager and torch.compile, where python3 has it) on the same card in turns, figure 1's iterations and its
losses against the CPU's, the sparse update against a copy, the idle share under the real loader, the memory of eight
agents against its forecast, and trainings that must repeat.

Each part has processes and a time limit of its own, so that none stops the others. The first parts are those of the
headline: the self-test and figure 1 in fp32, and ResNet-50, whose convolutions are chosen in a part before. Results are
written to --out as they come: card.md, card.json, logs, and the choices, which later calls take over. A second call
runs the parts that are left; --only runs parts again. The exit status is 1 if a part failed, not if a target is missed.`,
		Example: `  fspda bench card
  fspda bench card --only selftest,figure1 --budget 3m
  fspda bench card --device cpu --tiny`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress, o.Version = cmd.ErrOrStderr(), command.Version()
			r, err := runAcceptance(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				err = command.PrintJSON(cmd.OutOrStdout(), r)
			} else {
				_, err = fmt.Fprint(cmd.OutOrStdout(), r.Markdown())
			}
			if n := r.Failed(); err == nil && n > 0 {
				return fmt.Errorf("bench card: %d parts failed; their logs are in %s/logs", n, o.Out)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Device, "device", o.Device, "cuda, cuda:N, or cpu to try the command")
	fs.StringVar(&o.Out, "out", o.Out, "folder of the results")
	fs.StringVar(&o.Only, "only", "",
		"only parts whose name contains this, or one of several separated by commas; also those that are done")
	fs.DurationVar(&o.Budget, "budget", o.Budget, "time after which no further part starts and the current one ends")
	fs.StringVar(&o.Python, "python", o.Python, "Python that has PyTorch; empty leaves PyTorch out")
	fs.StringVar(&o.Data, "data-dir", "", "folder of images for the loader; without it some are generated")
	fs.BoolVar(&o.Tiny, "tiny", false, "small shapes and short times, to try the command")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// runAcceptance describes the machine and runs all parts.
func runAcceptance(ctx context.Context, o acceptance.Options) (*acceptance.Results, error) {
	var err error
	if o.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	if o.Machine, o.Lacks, err = inspectMachine(ctx, o.Device); err != nil {
		return nil, err
	}
	return acceptance.Run(ctx, o)
}

// inspectMachine describes the machine, and returns the precisions that its GPU lacks, with the
// reason. It is an error if the GPU cannot be used.
func inspectMachine(ctx context.Context, name string) (facts []acceptance.Fact, lacks map[string]string, err error) {
	facts = []acceptance.Fact{{Name: "host",
		Value: fmt.Sprintf("%s, %d cores", runfolder.Machine(), runtime.NumCPU())}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, acceptance.Fact{Name: name, Value: value})
		}
	}
	if !strings.HasPrefix(name, "cuda") {
		return facts, nil, nil
	}
	_, indices, err := device.ParseName(name)
	if err != nil {
		return nil, nil, &train.ConfigError{Key: "device", Got: name, Err: err}
	}
	at := 0
	if len(indices) > 0 {
		at = indices[0]
	}
	r := cuda.Find()
	hint := "fspda devices lists what was searched and where; --device cpu --tiny tries the command without a GPU"
	switch {
	case r.Problem != "":
		return nil, nil, &train.ConfigError{Key: "device", Got: name, Err: errors.New(r.Problem), Want: hint}
	case at >= len(r.GPUs):
		return nil, nil, &train.ConfigError{Key: "device", Got: name, Want: fmt.Sprintf("the driver finds %d GPUs",
			len(r.GPUs))}
	case !r.GPUs[at].Usable:
		return nil, nil, &train.ConfigError{Key: "device", Got: name, Err: errors.New(r.GPUs[at].Problem), Want: hint}
	}
	g := r.GPUs[at]
	add("GPU", fmt.Sprintf("%s, %s, compute capability %s", g.Name, command.Bytes(g.Memory), g.Capability))
	add("driver", "CUDA "+r.Driver+", "+r.Path)
	for _, l := range g.Libraries {
		add(l.Name, l.Path)
	}
	add("nvidia-smi", nvidiaSMI(ctx, at))
	return facts, g.Lacks, nil
}

// nvidiaSMI returns the report of nvidia-smi about clocks and power, or nothing if nvidia-smi is
// missing.
func nvidiaSMI(ctx context.Context, gpu int) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const asked = "driver_version,clocks.max.sm,clocks.max.memory,power.limit,temperature.gpu," +
		"ecc.mode.current,mig.mode.current,memory.used"
	out, err := exec.CommandContext(ctx, "nvidia-smi", "-i", strconv.Itoa(gpu), "--query-gpu="+asked,
		"--format=csv,noheader").Output()
	if err != nil {
		return ""
	}
	names, values := strings.Split(asked, ","), strings.Split(strings.TrimSpace(string(out)), ", ")
	if len(names) != len(values) {
		return strings.TrimSpace(string(out))
	}
	for i := range names {
		values[i] = names[i] + " " + values[i]
	}
	return strings.Join(values, ", ")
}
