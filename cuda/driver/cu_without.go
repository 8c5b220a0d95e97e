//go:build !cu

package driver

// Without the build tag cu everything is called as it was bound.
func useCU(*API)    {}
func useCUHot(*Hot) {}
