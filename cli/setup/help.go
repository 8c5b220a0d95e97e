package setup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/train"
	"fspda/train/config"
)

// topicOf is the annotation of a flag that names its topic.
const topicOf = "fspda_topic"

// usual are the commonest flags, which a short help explains first.
var usual = []string{"algo", "agents", "graph", "data", "data-dir", "model", "alpha", "batch", "iterations", "out"}

const helpWidth = 110

// Topic puts flags into a topic of the help.
func Topic(fs *pflag.FlagSet, topic string, names ...string) {
	for _, name := range names {
		_ = fs.SetAnnotation(name, topicOf, []string{topic})
	}
}

// FlagUsages explains the flags of a command. Of a command with all keys of the configuration it
// explains the commonest, and lists the others by topic; the argument that follows --help is a
// topic to explain, or all.
func FlagUsages(cmd *cobra.Command) string {
	flags, topics, topic := cmd.LocalFlags(), Topics(cmd), cmd.Flags().Arg(0)
	switch {
	case topics == nil:
		return flags.FlagUsagesWrapped(helpWidth)
	case slices.Contains(topics, topic):
		return usagesByTopic(flags, topic)
	}
	return shortUsages(flags)
}

// Topics lists the words that may follow --help: for a command with all keys of the configuration,
// the topics of its help, and the word all. It is nil for other commands.
func Topics(cmd *cobra.Command) []string {
	flags := cmd.LocalFlags()
	if flags.Lookup(usual[0]) == nil || flags.Lookup("density") == nil {
		return nil
	}
	return append(slices.Clone(config.Groups()), "all")
}

func usagesByTopic(flags *pflag.FlagSet, topic string) string {
	var b strings.Builder
	for _, t := range append(config.Groups(), "") {
		if some := chosen(flags, t); some.HasFlags() && (t == topic || topic == "all") {
			fmt.Fprintf(&b, "\n%s:\n%s", heading(t), some.FlagUsagesWrapped(helpWidth))
		}
	}
	return b.String()
}

// shortUsages explains the commonest flags, and lists the others.
func shortUsages(flags *pflag.FlagSet) string {
	var b strings.Builder
	first := pflag.NewFlagSet("", pflag.ContinueOnError)
	first.SortFlags = false
	for _, name := range usual {
		if f := flags.Lookup(name); f != nil { // not every command writes a folder
			first.AddFlag(f)
		}
	}
	b.WriteString(first.FlagUsagesWrapped(helpWidth))
	if own := chosen(flags, ""); own.HasFlags() {
		fmt.Fprintf(&b, "\n%s:\n%s", heading(""), own.FlagUsagesWrapped(helpWidth))
	}
	b.WriteString("\nAll flags by topic; --help TOPIC explains those of a topic, --help all explains all:\n")
	for _, t := range config.Groups() {
		line := fmt.Sprintf("  %-9s", t)
		chosen(flags, t).VisitAll(func(f *pflag.Flag) {
			if len(line)+len(f.Name)+3 > helpWidth {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", 11)
			}
			line += " --" + f.Name
		})
		b.WriteString(line + "\n")
	}
	return b.String()
}

func heading(topic string) string {
	if topic == "" {
		return "Of this command"
	}
	return strings.ToUpper(topic[:1]) + topic[1:]
}

// chosen returns the flags of a topic that are not hidden; "" is the topic of flags without one.
func chosen(flags *pflag.FlagSet, topic string) *pflag.FlagSet {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	some.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && strings.Join(f.Annotations[topicOf], "") == topic {
			some.AddFlag(f)
		}
	})
	return some
}

// CompleteKeys makes the shell complete the values of flags of keys whose values are names, for a
// command and those below it. Cobra keeps these flags for as long as the process runs.
func CompleteKeys(cmd *cobra.Command) {
	for _, key := range train.Keys() {
		if cmd.Flags().Lookup(FlagName(key)) == nil {
			continue
		}
		if names := config.Choices(key); names != nil {
			_ = cmd.RegisterFlagCompletionFunc(FlagName(key), func(_ *cobra.Command, _ []string,
				begun string) ([]string, cobra.ShellCompDirective) {
				fits := func(name string) bool { return strings.HasPrefix(name, strings.ToLower(begun)) }
				return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !fits(name) }),
					cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	for _, c := range cmd.Commands() {
		CompleteKeys(c)
	}
}

// Aliases returns a function that spells the flags of keys as this program does, with dashes, and
// takes the names that other programs give to them. It tells hint of each such name that was given.
func Aliases(hint func(string)) func(*pflag.FlagSet, string) pflag.NormalizedName {
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ToLower(name)
		if key := config.Alias(name); key != "" {
			hint(fmt.Sprintf("--%s is called --%s here", name, FlagName(key)))
			return pflag.NormalizedName(FlagName(key))
		}
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	}
}
