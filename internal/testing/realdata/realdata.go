package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder of real data: in $FSPDA_DATA, or in shared/data beside
// the repository. It skips the test where there is none.
func Path(t testing.TB, name string) string {
	t.Helper()
	dirs, up := []string{os.Getenv("FSPDA_DATA")}, ".."
	for range 6 { // searches from the folder of a package to the repository's, and above
		dirs, up = append(dirs, filepath.Join(up, "shared", "data")), filepath.Join(up, "..")
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); dir != "" && err == nil {
			return path
		}
	}
	t.Skipf("no real data: set FSPDA_DATA to a folder with %s in it", name)
	return ""
}
