//go:build !cu

package driver

// Without the build tag cu, all functions keep their bindings.
func useCU(*API)       {}
func useCUHot(*HotAPI) {}
