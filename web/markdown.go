package web

import (
	"fmt"
	"strings"
)

// markdown returns the report as Markdown: the same numbers, with the images of folder plots.
func (v *view) markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s Status: %s.\n\n", v.Name, v.Sentence, v.Status)
	if v.Failure != "" {
		fmt.Fprintf(&b, "The run has failed to converge: %s.\n\n", v.Failure)
	}
	for _, m := range v.Missing {
		fmt.Fprintf(&b, "There is no %s in the folder of the run.\n\n", m)
	}
	b.WriteString("## Curves\n\n")
	for _, axis := range xAxesOf("") {
		for _, c := range v.Charts {
			fmt.Fprintf(&b, "![%s against %s](plots/%s-%s.svg)\n", c.Title, axis.id, c.ID, axis.id)
		}
	}
	b.WriteString("\n## At the end\n\n")
	factTable(&b, v.Results)
	b.WriteString("## What was sent\n\n")
	factTable(&b, v.Bits)
	v.milestoneTable(&b)
	if v.Split.Note != "" || v.Graph.Note != "" {
		split, _, _ := strings.Cut(v.Split.Note, " A cell's") // the rest explains the heat map
		fmt.Fprintf(&b, "## Data and graph\n\n%s %s\n\n", split, v.Graph.Note)
	}
	for i, s := range v.Samples {
		if i == 0 {
			b.WriteString("## Text of the mean model\n\n")
		}
		fmt.Fprintf(&b, "Iteration %s:\n\n", s.Iteration)
		fenced(&b, "text", strings.Trim(s.Text, "\n"))
	}
	b.WriteString("## Run it again\n\n")
	if v.Command != "" {
		fenced(&b, "sh", v.Command)
	}
	factTable(&b, v.Environment)
	if v.Config != "" {
		b.WriteString("## Configuration\n\n")
		fenced(&b, "yaml", strings.TrimRight(v.Config, "\n"))
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

// milestoneTable writes the cost of reaching accuracies.
func (v *view) milestoneTable(b *strings.Builder) {
	b.WriteString("## Cost of an accuracy\n\n")
	if len(v.Milestones) == 0 {
		b.WriteString("No test accuracy of 10 % or more was measured.\n\n")
		return
	}
	b.WriteString("When the test accuracy of the mean model reached these values, and what had been sent by then: " +
		"interpolated between two evaluations, which are so many iterations apart.\n\n| accuracy | iteration | " +
		"wall time |")
	for _, m := range v.Modes {
		b.WriteString(" bits, " + m + " |")
	}
	b.WriteString(" apart |\n|" + strings.Repeat("--:|", 4+len(v.Modes)) + "\n")
	for _, m := range v.Milestones {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", m.Level, m.Iteration, m.Wall, strings.Join(m.Bits, " | "),
			m.Apart)
	}
	b.WriteString("\n")
}

// factTable writes facts as a table, with a column for notes if any fact has one.
func factTable(b *strings.Builder, facts []fact) {
	noted := false
	for _, f := range facts {
		noted = noted || f.Note != ""
	}
	if noted {
		b.WriteString("| | | |\n|---|--:|---|\n")
	} else {
		b.WriteString("| | |\n|---|---|\n")
	}
	for _, f := range facts {
		fmt.Fprintf(b, "| %s | %s |", cellText(f.Name), cellText(f.Value))
		if noted {
			fmt.Fprintf(b, " %s |", cellText(f.Note))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// cellText escapes a text for a table cell.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(clean(s))
}

// fenced writes a text as a code block, with a fence that the text does not contain.
func fenced(b *strings.Builder, kind, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(b, "%s%s\n%s\n%s\n\n", fence, kind, text, fence)
}
