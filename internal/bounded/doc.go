// Package bounded reads files that others may have written, in bounded memory: regular files of a
// limited size, and YAML of limited depth without anchors.
package bounded
