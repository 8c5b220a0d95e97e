package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/setup"
	"fspda/internal/testing/doctable"
	"fspda/train"
	"fspda/train/setting"
)

// The reference is current, and has every key. With -update the test writes it.
func TestReferenceIsCurrent(t *testing.T) {
	const file = "../docs/reference.md"
	text := reference(silentRoot())
	if *doctable.Update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != text {
		t.Errorf("%s is not current: make generate", file)
	}
	for _, key := range train.Keys() {
		if !strings.Contains(text, "| `"+key+"`") {
			t.Errorf("the reference lacks key %s", key)
		}
	}
}

// reference returns the text of docs/reference.md: every command with its flags, every key, every
// exit status.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Reference: every command, key and exit status\n\nMade from the code by `make generate`. `fspda " +
		"COMMAND --help` says the same.\n\n")
	var commands []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
				commands = append(commands, sub)
				walk(sub)
			}
		}
	}
	walk(root)
	b.WriteString("| command | |\n|---|---|\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c), cell(c.Short))
	}
	b.WriteString("| `fspda completion SHELL` | Write the completion script for bash, zsh, fish or powershell |\n\n")
	for _, c := range commands {
		writeCommand(&b, c)
	}
	writeKeys(&b)
	b.WriteString(statusTable)
	return b.String()
}

// statusTable lists the exit statuses.
const statusTable = `## Exit statuses

| status | meaning |
|---|---|
| 0 | done |
| 1 | something failed |
| 2 | bad input, or a folder or checkpoint that cannot be used; the message says what to do |
| 3 | the run diverged |
| 4 | a disk is full; make room, then resume: checkpoints are kept |
| 130 | stopped by Ctrl-C, SIGTERM, a closed terminal (SIGHUP) or the stop button, with a checkpoint |

` + "`NO_COLOR`" + ` needs nothing: the program never prints colours. ` + "`TERM=dumb`" + ` leaves out the curves in the terminal. ` + "`FSPDA_WEB_TOKEN`" + ` sets the token of the live page.
`

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "## %s\n\n", c.CommandPath())
	long := cmp.Or(c.Long, c.Short+".")
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n\n", long, c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "Examples:\n\n```\n%s\n```\n\n", strings.ReplaceAll(strings.TrimLeft(c.Example, " "), "\n  ",
			"\n"))
	}
	keys := map[string]bool{}
	for _, k := range train.Keys() {
		keys[setup.FlagName(k)] = true
	}
	rows, all := 0, 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if keys[f.Name] && c.Name() == "train" {
			all++
			return
		}
		if rows++; rows == 1 {
			b.WriteString("| flag | default | |\n|---|---|---|\n")
		}
		writeFlag(b, f)
	})
	if all > 0 {
		fmt.Fprintf(b, "\nand each of the %d [keys](#keys).\n", all)
	}
	b.WriteString("\n")
}

func writeFlag(b *strings.Builder, f *pflag.Flag) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value(f.DefValue), cell(f.Usage))
}

func writeKeys(b *strings.Builder) {
	b.WriteString("## Keys\n\nKeys of the YAML file of `fspda train -c`, and its flags, with dashes in place of " +
		"underscores. Those marked · never change a trajectory.\n\n| key | default | |\n|---|---|---|\n")
	c := train.Default()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	setup.ConfigFlags(fs, &c)
	for _, f := range c.Fields() {
		mark := ""
		if f.Free() && f.Resume != setting.Moves {
			mark = " ·"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", f.Name, mark, value(fs.Lookup(setup.FlagName(f.Name)).DefValue),
			cell(f.Help))
	}
	b.WriteString("\n")
}

// value writes a default; nothing if it is empty.
func value(v string) string {
	if v == "" || v == "[]" {
		return ""
	}
	return "`" + v + "`"
}

// cell escapes a text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
