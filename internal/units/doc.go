// Package units writes numbers for people: with units and prefixes, as percentages, as durations
// and rounded. Command line, tables and pages share it, so that a number is the same text in all.
//
// A number that is missing or not finite is a dash, and negative numbers have a minus sign.
package units
