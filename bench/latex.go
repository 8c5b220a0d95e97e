package bench

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// latexText escapes a text for LaTeX.
var latexText = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "±", `$\pm$`, "−", `$-$`, "–", "--",
	"×", `$\times$`, "≤", `$\le$`, "≥", `$\ge$`, "<", `$<$`, ">", `$>$`, "|", `$|$`, "\n", " ",
	"α", `$\alpha$`, "β", `$\beta$`, "γ", `$\gamma$`, "η", `$\eta$`, "θ", `$\theta$`, "λ", `$\lambda$`, "μ", `$\mu$`,
	"…", `\dots{}`)

// WriteLaTeX writes the final scores and bits, and the costs, as two tabular environments with the
// rules of the package booktabs.
func (t *Table) WriteLaTeX(w io.Writer) error {
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n")
	bits := map[string]int{"packed": 8, "reference": 9} // columns of Finals
	var finals [][]string
	for _, line := range t.Finals() {
		finals = append(finals, append(append(line[:1:1], line[4:7]...), line[cmp.Or(bits[t.Accounting], 7)]))
	}
	finals[0][4] = "bits sent"
	writeTabular(&b, finals)
	costs, note := t.Costs()
	fmt.Fprintf(&b, "\n%% %s\n", note)
	writeTabular(&b, costs)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTabular writes lines of cells, the first of which is the head: names to the left, numbers to
// the right.
func writeTabular(b *strings.Builder, lines [][]string) {
	fmt.Fprintf(b, "\\begin{tabular}{@{}l%s@{}}\n\\toprule\n", strings.Repeat("r", len(lines[0])-1))
	for i, cells := range lines {
		texts := make([]string, len(cells))
		for k, c := range cells {
			texts[k] = latexText.Replace(c)
		}
		fmt.Fprintf(b, "%s \\\\\n", strings.Join(texts, " & "))
		if i == 0 {
			b.WriteString("\\midrule\n")
		}
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
}
