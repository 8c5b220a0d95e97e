package train

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// The documentation of Setup, an alias whose fields go doc does not show, names its fields.
func TestSetupNamesItsFields(t *testing.T) {
	source, err := os.ReadFile("alias.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "// Setup is a resolved")
	text, _, found := strings.Cut(text, "type Setup =")
	if !found {
		t.Fatal("Setup has no documentation")
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Setup]()) {
		if len(f.Index) > 1 || !f.IsExported() {
			continue
		}
		if !regexp.MustCompile(`\b` + f.Name + `\b`).MatchString(text) {
			t.Errorf("the documentation of Setup does not name %s", f.Name)
		}
	}
}
