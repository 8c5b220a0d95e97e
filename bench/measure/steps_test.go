package measure

import (
	"context"
	"strings"
	"testing"
)

// The table has a line for each algorithm, and STORM's second gradient is visible in it.
func TestSteps(t *testing.T) {
	var all []StepOptions
	for _, name := range []string{"fspda-sa", "fspda-storm"} {
		o := options(t, 1e6)
		c := o.Setup.Config.Stored()
		c.Algo = name
		s, err := c.Resolve(o.Setup.Set, o.Model)
		if err != nil {
			t.Fatal(err)
		}
		o.Setup, o.Products = s, nil
		all = append(all, o)
	}
	table, err := Steps(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "3 agents") || !strings.Contains(lines[1], "step / fspda-sa") ||
		!strings.Contains(lines[3], "fspda-storm") {
		t.Errorf("the table is\n%s", table)
	}
	for _, r := range table {
		if r.Gradient <= 0 || r.Vectors <= 0 || r.VectorShare() >= 1 || r.GEMM != 0 {
			t.Errorf("%+v", r)
		}
	}
	if text := (StepTable{}).String(); text != "" {
		t.Errorf("an empty table is %q", text)
	}
	all[1].Each = 0
	if _, err := Steps(context.Background(), all); err == nil || !strings.Contains(err.Error(), "fspda-storm") {
		t.Errorf("error %v does not name the algorithm", err)
	}
}
