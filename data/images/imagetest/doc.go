// Package imagetest encodes pictures for the tests of the packages that read them. It looks at none
// of those, so that each of them can use it.
package imagetest
