package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fspda/cli/benchcmd"
	"fspda/cli/command"
	"fspda/cli/datacmd"
	"fspda/cli/devicecmd"
	"fspda/cli/docscmd"
	"fspda/cli/experimentcmd"
	"fspda/cli/modelcmd"
	"fspda/cli/runscmd"
	"fspda/cli/setup"
	"fspda/cli/traincmd"
	"fspda/data"
	"fspda/model"
	"fspda/train"
	"fspda/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Part is something of a program's own that its command has too: an algorithm, a network, a data
// set or a setting.
type Part func()

// Method is an algorithm, a value of --algo.
func Method(m train.Method) Part { return func() { train.Register(m) } }

// Network is a network, a value of --model, with the keys that it reads and not every network
// reads.
func Network(name string, open func(model.Options) (*model.Network, error), keys ...string) Part {
	return func() { model.Register(name, open, keys...) }
}

// Dataset is a data set, a value of --data.
func Dataset(name string, open func(data.OpenOptions) (*data.Set, error)) Part {
	return func() { data.Register(name, open) }
}

// Key is a setting, a flag and a key of files.
func Key(k setting.Key) Part { return func() { train.RegisterKey(k) } }

// With collects parts.
func With(parts ...Part) Part {
	return func() {
		for _, add := range parts {
			add()
		}
	}
}

// Main runs the command with the arguments of the process and with the given parts, and ends the
// process. It panics if the name of a part is taken.
func Main(parts ...Part) {
	With(parts...)()
	ctx := command.UntilStopped(context.Background())
	if os.Getenv(command.StopAtEOF) != "" {
		ctx = command.UntilEOF(ctx, os.Stdin)
	}
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the command with arguments and returns its exit status. It prints errors to stderr.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		setup.CompleteKeys(root)
	}
	root.SetArgs(append([]string{}, args...)) // not nil: cobra would take the arguments of the process
	badTopic := refuseTopics(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = badTopic()
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == os.Stdout.Name() {
		err = command.CannotWrite("the standard output", "make room where it goes, or send it elsewhere", at)
	}
	status := command.ExitStatus(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		status = command.ExitStopped
	}
	if err != nil && status != command.ExitStopped {
		fmt.Fprintf(stderr, "fspda: %s\n", indent(message(err)))
	}
	return status
}

// namedPackages are the packages whose errors begin with their name. TestNamedPackages compares
// them with the source.
var namedPackages = []string{"agreement", "algo", "bare", "bench", "bpe", "config", "cpu", "cublas", "cuda", "cudnn",
	"data", "device", "devicetest", "discover", "dist", "driver", "dynlib", "evaluate", "external", "fetch",
	"generate", "gpt2", "images", "jpeg", "kernels", "link", "live", "measure", "membership", "model", "nats", "nvrtc",
	"onnx", "packed", "process", "rng", "runfolder", "safetensors", "sharedmem", "snapshot", "tensorboard", "text",
	"theory", "train", "web"}

// inner matches names of packages, and of a data set that an error of data repeats, inside of an
// error message.
var inner = regexp.MustCompile(`(: |\()(?:(?:data: set [^:]+|` + strings.Join(namedPackages, "|") + `): )+`)

// message returns the text of an error with at most one name of a package, the first, and without
// names of Go's types and functions.
func message(err error) string {
	text := inner.ReplaceAllString(err.Error(), "$1")
	text = mismatch.ReplaceAllStringFunc(text, func(s string) string {
		m := mismatch.FindStringSubmatch(s)
		at := ""
		if key := m[3][strings.LastIndexByte(m[3], '.')+1:]; m[1] != "" && key != "" {
			at = key + ": "
		}
		return fmt.Sprintf("%sfound %s, expected %s", at, kind(m[2]), kind(m[4]))
	})
	text = strings.TrimRight(text, "\n ") // excerpts of a file end with an empty line
	return notNumber.ReplaceAllString(text, "$1 is not a number in its range")
}

// The errors of decoders of YAML and JSON about a value of another type, and of package strconv.
var (
	mismatch = regexp.MustCompile(`(json: )?cannot unmarshal (\S+|map\[string\]interface \{\}|\[\]interface \{\}) ` +
		`into Go (?:struct field|value) ?(\S*) of type ([^\s:]+)(?: \( overflow \))?`)
	notNumber = regexp.MustCompile(`strconv\.[A-Z]\w+: parsing ("[^"]*"): [a-z ]+`)
)

// kind names a type of Go, or one of JSON, in plain words; a value stays as it is.
func kind(name string) string {
	switch {
	case strings.HasPrefix(name, "["), name == "array":
		return "a list"
	case strings.HasPrefix(name, "map"), name == "object", strings.Contains(name, "."):
		return "keys with values"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case strings.HasPrefix(name, "float"), name == "number":
		return "a number"
	case name == "string":
		return "a text"
	case name == "bool":
		return "true or false"
	}
	return name
}

// indent aligns the further lines of an error with its first.
func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n       ") }

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "fspda",
		Short:         "Decentralized training over random networks: one binary, one command, same seed same curve",
		Version:       command.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.OnlyHolds(root)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(command.FlagError)
	for _, commands := range [][]*cobra.Command{traincmd.Commands(), modelcmd.Commands(),
		experimentcmd.Commands(silentRoot), runscmd.Commands(), datacmd.Commands(), docscmd.Commands(),
		benchcmd.Commands(), devicecmd.Commands()} {
		root.AddCommand(commands...)
	}
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	complete(root)
	takeAliases(root)
	usage := strings.Replace(root.UsageTemplate(), "{{.LocalFlags.FlagUsages |", "{{flagUsages . |", 1)
	addTemplates()
	root.SetUsageTemplate(usage)
	return root
}

// addTemplates adds to a map that all programs in this process share.
var addTemplates = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagUsages", setup.FlagUsages) })

// silentRoot is the program without output, for checks of command lines.
func silentRoot() *cobra.Command { return newRoot(io.Discard, io.Discard) }

// takeAliases lets flags have the names that other programs give them, and tells the user their
// names here.
func takeAliases(root *cobra.Command) {
	hints := map[string]bool{}
	root.SetGlobalNormalizationFunc(setup.Aliases(func(hint string) { hints[hint] = true }))
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := refuseEmpty(cmd.Flags()); err != nil {
			return err
		}
		for _, name := range []string{"quiet", "json"} {
			if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
				return nil
			}
		}
		for _, hint := range slices.Sorted(maps.Keys(hints)) {
			fmt.Fprintln(cmd.ErrOrStderr(), hint)
		}
		return nil
	}
}

// refuseEmpty refuses texts that were given and are empty, as from a variable of the shell that is
// not set. Keys of the configuration may be empty, which takes back the value of a file, and so may
// flags whose default is not: see --python of fspda bench card.
func refuseEmpty(fs *pflag.FlagSet) (err error) {
	keys := train.Keys()
	fs.Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && f.DefValue == "" &&
			!slices.ContainsFunc(keys, func(key string) bool { return setup.FlagName(key) == f.Name }) {
			err = command.UsageErrorf("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// complete makes commands refuse arguments unless they declare some, and list their flags in the
// order in which they were added.
func complete(cmd *cobra.Command) {
	cmd.Flags().SortFlags, cmd.PersistentFlags().SortFlags = false, false
	if cmd.Args == nil {
		cmd.Args = command.NoArgs
	}
	if cmd.Name() == "completion" {
		command.OnlyHolds(cmd)
	}
	for _, c := range cmd.Commands() {
		complete(c)
	}
}
