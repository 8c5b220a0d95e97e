package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Markdown is all results for people.
func (r *Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fspda %s on %s, %s\n\n", r.Version, r.Device, r.Began.Format(time.DateTime+" MST"))
	if r.Tiny {
		b.WriteString("Tiny shapes, to try the command: the verdicts say nothing of the device.\n\n")
	}
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.Name, f.Value)
	}
	b.WriteString("\n## Acceptance\n\n")
	rows := [][]string{}
	for _, l := range r.Table {
		rows = append(rows, []string{l.What, l.Bar, l.Measured, l.Verdict})
	}
	table(&b, []string{"line", "bar", "measured", "verdict"}, rows)
	r.writeNetworks(&b)
	r.writeParts(&b)
	return b.String()
}

// writeNetworks is the table of all gradients.
func (r *Results) writeNetworks(b *strings.Builder) {
	s := r.options.shapes()
	var rows [][]string
	for _, g := range s.gradients(append([]string{"tf32"}, judged...)) {
		out := r.outcome(g.name())
		if out == nil {
			continue
		}
		cell := func(key, format string, unit float64) string {
			if v, ok := out.Values[key]; ok {
				return fmt.Sprintf(format, unit*v)
			}
			return "–"
		}
		rows = append(rows, []string{fmt.Sprintf("%s, batch %d, %d px", g.precision, g.batch, g.pixels),
			cell("ours", "%.1f", 1), cell("roofline", "%.0f %%", 100), cell("eager", "%.1f", 1),
			cell("compiled", "%.1f", 1), cell("eager_ratio", "%.2f", 1), cell("compiled_ratio", "%.2f", 1)})
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Gradients of %s, images/s\n\n", s.network)
	table(b, []string{"", "fspda", "of the roofline", "PyTorch eager", "compiled", "fspda / eager", "fspda / compiled"},
		rows)
}

// writeParts writes every part, then the notes of all parts.
func (r *Results) writeParts(b *strings.Builder) {
	b.WriteString("\n## Parts\n\n")
	var rows [][]string
	for _, o := range r.Outcomes {
		rows = append(rows, []string{o.Part, string(o.Status), fmt.Sprintf("%.0f", o.Seconds),
			joined(o.Reason, o.Summary, o.Peer)})
	}
	table(b, []string{"part", "", "s", "what came of it"}, rows)
	for _, o := range r.Outcomes {
		for _, note := range o.Notes {
			fmt.Fprintf(b, "\n- %s: %s", o.Part, oneLine(note))
		}
	}
	b.WriteString("\n")
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

func table(b *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		for i, c := range row {
			row[i] = strings.ReplaceAll(oneLine(c), "|", "\\|")
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
