// Package metric has the row of metrics that an evaluation makes: its columns, and how it is
// written. It computes nothing, so that pages and plots, which read rows of files, know the columns
// too.
package metric
