// Package spelling suggests the closest valid name for a misspelled one.
package spelling
