package bench

import (
	"testing"
)

func TestFiguresParse(t *testing.T) {
	all, err := Figures()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, fl := range FlavourNames {
			for _, r := range f.Runs {
				c, err := f.config(r, fl)
				if err != nil {
					t.Error(err)
				}
				t.Log(f.Number, fl, r.Name, c.Check())
			}
		}
	}
}
