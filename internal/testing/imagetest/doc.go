// Package imagetest encodes images for tests. It imports none of the packages under test, so all of
// them can use it.
package imagetest
