// Package realdata finds real data sets for tests.
package realdata
